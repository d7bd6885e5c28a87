-- Suggestions that a reviewer types: how a review was made, why its author closed it, and the further parts
-- of a suggestion. A review has its first part.
ALTER TABLE reviews ADD COLUMN origin text;
ALTER TABLE reviews ADD COLUMN outcome text;
ALTER TABLE reviews ADD COLUMN more_parts bigint NOT NULL DEFAULT 0;

CREATE TABLE review_parts (
    review_id     text   COLLATE "C" NOT NULL REFERENCES reviews (id) ON DELETE CASCADE,
    part          bigint NOT NULL,
    anchor_start  bigint NOT NULL,
    anchor_end    bigint NOT NULL,
    quote         text   NOT NULL,
    prefix        text   NOT NULL,
    suffix        text   NOT NULL,
    current_start bytea  NOT NULL,
    current_end   bytea  NOT NULL,
    text          text   NOT NULL,
    PRIMARY KEY (review_id, part)
);

-- Answers how many open reviews a link has.
CREATE INDEX reviews_open_of_link ON reviews (link_id, more_parts) WHERE status = 'open';
