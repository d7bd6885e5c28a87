-- Answers whether the id of a typed suggestion was used on a link. The database stores the deletions of the
-- last 20,000 changes of a document now.
CREATE INDEX deleted_reviews_by_id ON deleted_reviews (review_id);
