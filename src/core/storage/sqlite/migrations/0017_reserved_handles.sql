-- A handle that its user gave up stays reserved for a time: another user with it would receive the
-- requests of those who know the former one. NULL: in force.
ALTER TABLE handles ADD COLUMN released_at INTEGER;
