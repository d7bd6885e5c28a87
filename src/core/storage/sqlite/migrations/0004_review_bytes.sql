-- The bytes of a review's texts and of its replies. Each write keeps the column; the server bounds it for
-- one review and its sum for a share link. The index answers count, sum and order of a link's reviews
-- without reading a text.

ALTER TABLE reviews ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

UPDATE reviews SET bytes =
    octet_length(quote) + octet_length(prefix) + octet_length(suffix) + octet_length(body)
    + COALESCE(octet_length(suggestion), 0)
    + COALESCE((SELECT SUM(octet_length(body)) FROM replies WHERE review_id = reviews.id), 0);

DROP INDEX reviews_of_link;
CREATE INDEX reviews_of_link ON reviews (link_id, created_at, id, bytes);
