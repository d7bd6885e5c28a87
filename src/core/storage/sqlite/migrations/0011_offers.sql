-- Review offers, and the claims of their places.

CREATE TABLE review_offers (
    id          TEXT    NOT NULL PRIMARY KEY,
    owner_id    TEXT    NOT NULL REFERENCES users (id),
    title       TEXT    NOT NULL,
    message     TEXT,
    capacity    INTEGER NOT NULL,
    -- The claims that hold a place.
    claimed     INTEGER NOT NULL DEFAULT 0,
    -- The number of the last claim, also of one that was withdrawn.
    last_number INTEGER NOT NULL DEFAULT 0,
    -- The fence of the last grant of the offer's lock that took a place.
    fence       INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL,
    closed_at   INTEGER,
    CHECK (0 <= claimed AND claimed <= capacity)
) STRICT;

CREATE INDEX review_offers_of_owner ON review_offers (owner_id, created_at, id);

-- A withdrawn or declined claim stays while it counts against the claimant's limit of a day.
CREATE TABLE review_claims (
    id         TEXT    NOT NULL PRIMARY KEY,
    offer_id   TEXT    NOT NULL REFERENCES review_offers (id) ON DELETE CASCADE,
    user_id    TEXT    NOT NULL REFERENCES users (id),
    number     INTEGER NOT NULL,
    message    TEXT,
    -- claimed or accepted
    state      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    -- When the claim was withdrawn or declined.
    ended_at   INTEGER
) STRICT;

-- A user holds one place of an offer.
CREATE UNIQUE INDEX review_claims_one_live ON review_claims (offer_id, user_id)
    WHERE ended_at IS NULL;
CREATE UNIQUE INDEX review_claims_by_number ON review_claims (offer_id, number);
CREATE INDEX review_claims_of_user ON review_claims (user_id, created_at);
