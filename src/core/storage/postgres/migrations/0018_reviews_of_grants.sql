-- The reviews and replies that were stored under the grant: `seat.left` names their number.
ALTER TABLE webhook_seats ADD COLUMN reviews bigint NOT NULL DEFAULT 0;
