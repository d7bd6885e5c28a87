-- The `traceparent` of the request that caused the event, which its deliveries pass on. As in SQLite.
ALTER TABLE webhooks ADD COLUMN traceparent TEXT;
