-- Gives a lock to who asks, if it is free, theirs already, or may be taken over.
--
-- One script, so that nobody can come between the look and the taking. It may run twice: a claim
-- repeated with the same value gets the same fence, so an answer that was lost can be asked again.
-- Only Redis's own clock is read. The fence rises above the last one, above that clock and above
-- what the database ratified; so it rises even if any two of the three are lost.
--
-- A value that was released is spent. So a claim that was given up, and taken back, and is carried
-- out only now, when Redis gets to it, takes nothing.
--
-- KEYS  1 the lock   2 its grant      (3 and 4 are kept for the waiting line)
-- ARGV  1 value   2 ttl in ms   3 floor   4 user   5 user's name   6 node
--       7 'nobody', 'value' or 'user': from whom it may be taken   8 that value
--       9 for how many ms a grant is remembered
-- Gives {1, fence, since in µs, who lost it or false}, or {0, holder}   (place in line: at the end),
--       or {-1} if the value is spent.
--       A holder is {value, ttl in ms, fence, user, name, node, since}, or {value, ttl in ms} if
--       its grant is not there: the key was set by hand.
local lock, grant, value, ttl = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local held = redis.call('GET', lock)
local last = redis.call('HMGET', grant, 'value', 'fence', 'user', 'name', 'node', 'since', 'released')
local told = held and last[1] == held

-- A fence that the database refused is not given again: the claimant comes back with its floor.
if told and held == value and tonumber(ARGV[3]) < tonumber(last[2]) then
  redis.call('PEXPIRE', lock, ttl)
  redis.call('PEXPIRE', grant, ARGV[9])
  return {1, last[2], last[6], false}
end

if last[7] == value then return {-1} end

local holder = false
if held and held ~= value then
  holder = {held, redis.call('PTTL', lock)}
  if told then
    for i = 2, 6 do holder[i + 1] = last[i] end
  end
  local may_take = (ARGV[7] == 'value' and held == ARGV[8])
    or (ARGV[7] == 'user' and told and last[3] == ARGV[4])
  if not may_take then return {0, holder} end
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- Doubles count exactly up to 2^53, which µs since the epoch reach in the year 2255.
local fence = string.format('%.0f', math.max(now, (tonumber(last[2]) or 0) + 1, ARGV[3] + 1))
local since = string.format('%.0f', now)
redis.call('SET', lock, value, 'PX', ttl)
redis.call('HSET', grant, 'value', value, 'fence', fence, 'user', ARGV[4], 'name', ARGV[5],
  'node', ARGV[6], 'since', since)
redis.call('PEXPIRE', grant, ARGV[9])
return {1, fence, since, holder}
