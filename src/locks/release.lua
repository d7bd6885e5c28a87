-- Gives a lock back, if this value has it.
--
-- Compared and deleted in one script, or it could free somebody else's lock. What is released may
-- not be raised again by a renewal that is late: the fence moves past that of the grant, and the
-- value is noted, which holds even if Redis came back empty in between and has no grant to move.
--
-- KEYS  1 the lock   2 its grant      (3 and 4 are kept for the waiting line)
-- ARGV  1 value   2 for how many ms a grant is remembered
-- Gives 1 if it was freed, 0 if it was not held
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end

if held then redis.call('DEL', KEYS[1]) end
if redis.call('HGET', KEYS[2], 'value') == ARGV[1] then
  redis.call('HDEL', KEYS[2], 'value', 'user', 'name', 'node', 'since')
  redis.call('HINCRBY', KEYS[2], 'fence', 1)
end
redis.call('HSET', KEYS[2], 'released', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return held and 1 or 0
