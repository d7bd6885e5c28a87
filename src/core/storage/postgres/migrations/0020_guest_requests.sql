-- Guests are free, so their pending requests to one user have a bound of their own.
ALTER TABLE review_requests ADD COLUMN by_guest boolean NOT NULL DEFAULT false;
-- Whether the user takes requests of guests.
ALTER TABLE users ADD COLUMN guest_requests boolean NOT NULL DEFAULT true;
