-- Review offers, and the claims of their places. As in SQLite.

CREATE TABLE review_offers (
    id          text        COLLATE "C" NOT NULL PRIMARY KEY,
    owner_id    text        COLLATE "C" NOT NULL REFERENCES users (id),
    title       text        NOT NULL,
    message     text,
    capacity    bigint      NOT NULL,
    -- The claims that hold a place.
    claimed     bigint      NOT NULL DEFAULT 0,
    -- The number of the last claim, also of one that was withdrawn.
    last_number bigint      NOT NULL DEFAULT 0,
    -- The fence of the last grant of the offer's lock that took a place.
    fence       bigint      NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL,
    closed_at   timestamptz,
    CHECK (0 <= claimed AND claimed <= capacity)
);

CREATE INDEX review_offers_of_owner ON review_offers (owner_id, created_at, id);

-- A withdrawn or declined claim stays while it counts against the claimant's limit of a day.
CREATE TABLE review_claims (
    id         text        COLLATE "C" NOT NULL PRIMARY KEY,
    offer_id   text        COLLATE "C" NOT NULL REFERENCES review_offers (id) ON DELETE CASCADE,
    user_id    text        COLLATE "C" NOT NULL REFERENCES users (id),
    number     bigint      NOT NULL,
    message    text,
    -- claimed or accepted
    state      text        COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    -- When the claim was withdrawn or declined.
    ended_at   timestamptz
);

-- A user holds one place of an offer.
CREATE UNIQUE INDEX review_claims_one_live ON review_claims (offer_id, user_id)
    WHERE ended_at IS NULL;
CREATE UNIQUE INDEX review_claims_by_number ON review_claims (offer_id, number);
CREATE INDEX review_claims_of_user ON review_claims (user_id, created_at);
