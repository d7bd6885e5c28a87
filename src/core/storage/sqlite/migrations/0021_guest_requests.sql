-- Guests are free, so their pending requests to one user have a bound of their own.
ALTER TABLE review_requests ADD COLUMN by_guest INTEGER NOT NULL DEFAULT 0;
-- Whether the user takes requests of guests.
ALTER TABLE users ADD COLUMN guest_requests INTEGER NOT NULL DEFAULT 1;
