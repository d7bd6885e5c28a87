-- Puts locks back that are gone although their holder lives: Redis came back empty, or the holder
-- was late and nobody was waiting.
--
-- Only if nobody had the lock in between, which the grant tells: it is gone too (then so is all
-- that anybody could have been given), or it is still this holder's. A released lock stays
-- released.
--
-- A key that somebody set by hand to something else than ours is lost to its holder alone: an error
-- would spoil the round for all others in the call.
--
-- KEYS  the lock and the grant of each
-- ARGV  1 ttl in ms   2 for how many ms a grant is remembered
--       3… of each: value, fence, since, owner
-- Gives a string with one byte for each: '1' held after all, '2' put back, '0' lost
local ttl, kept, verdicts = ARGV[1], ARGV[2], {}
for i = 1, #KEYS / 2 do
  local lock, grant, at = KEYS[2 * i - 1], KEYS[2 * i], 4 * i - 1
  local value, fence = ARGV[at], ARGV[at + 1]
  local held = redis.pcall('GET', lock)
  local last = redis.pcall('HMGET', grant, 'value', 'fence', 'released')
  local untouched = not last.err and (not last[2] or (last[1] == value and last[2] == fence))
  if held == value then
    redis.call('PEXPIRE', lock, ttl)
    verdicts[i] = '1'
  elseif held or last[3] == value or not untouched then
    verdicts[i] = '0'
  else
    redis.call('SET', lock, value, 'PX', ttl)
    redis.call('HSET', grant, 'value', value, 'fence', fence, 'since', ARGV[at + 2],
      'owner', ARGV[at + 3])
    redis.call('PEXPIRE', grant, kept)
    verdicts[i] = '2'
  end
end
return table.concat(verdicts)
