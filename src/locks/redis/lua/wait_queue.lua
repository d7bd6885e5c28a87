-- The waiting line. This text stands before claim.lua and release.lua, which share it. Before it
-- stand five numbers, of which four are texts: for how many ms a grant is remembered (kept), for how many somebody
-- who waits is believed to live (line_deadline), how many may wait (line_max), for how many ms a
-- lock is left to a holder who may come back (return_grace), and the end of all fences (fence_end).
--
-- Only Redis's own clock is read. Whoever waits says so again before its deadline in the line, or
-- counts as dead, and is taken out by whichever script looks at the line next.
--
-- After either script the lock is held if anybody living is in the line: a lock that is found free
-- is handed to the first, whoever found it. So nobody can come in past the line, and a hand-over
-- whose message is lost is there when its waiter looks. The one exception is a Redis that came back
-- empty or with an older state, where the holder is let be the first to come back.
--
-- KEYS  1 the lock   2 its grant   3 the line: who waits, by arrival   4 until when each is
--       believed to live   5 what is known of each
local lock, grant, line, due, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)

-- Doubles count exactly up to 2^53 (fence_end), which µs since the epoch reach in the year 2255. A fence
-- from there on could equal the next one, so a script refuses to mint it.
local function whole(number) return string.format('%.0f', number) end

-- Takes some out of the line.
local function leave(...)
  redis.call('ZREM', line, ...)
  redis.call('ZREM', due, ...)
  redis.call('HDEL', waiting, ...)
end

-- Who is first in the line, now that the dead are out of it; false if nobody is.
local function first()
  local head = redis.call('ZRANGE', line, 0, 0)[1]
  if not head then return false end
  local dead = redis.call('ZRANGEBYSCORE', due, '-inf', now_ms)
  if #dead == 0 then return head end
  leave(unpack(dead))
  return redis.call('ZRANGE', line, 0, 0)[1] or false
end

-- Gives the lock. The fence rises above the last one, above Redis's clock and above what the
-- database ratified; so it rises even if any two of the three are lost. The pass by which the owner
-- may come back is this grant's alone: that of the one before opens nothing from now on.
--
-- An owner is one text, made by whoever claims: user, their name, node and pass, packed one after
-- the other.
local function give(value, ttl, last, floor, owner)
  local fence = math.max(now, (tonumber(last) or 0) + 1, floor + 1)
  if fence_end <= fence then
    error({err = 'FENCE the next fence is beyond 2^53: the clock was, or a key was set by hand'})
  end
  fence = whole(fence)
  local since = whole(now)
  redis.call('SET', lock, value, 'PX', ttl)
  redis.call('HSET', grant, 'value', value, 'fence', fence, 'since', since, 'owner', owner)
  redis.call('PEXPIRE', grant, kept)
  return fence, since
end

-- Hands the lock to the first in the line and tells it alone, with all that it has to know: fence,
-- since when, and to whom. It has it for as long as it was believed to live anyway: if it does, it
-- makes the lease whole within that time; if it does not, it holds nobody up for longer than it
-- would have in the line. Gives the holder.
local function pass_on(head, last)
  local server, floor, owner = cmsgpack.unpack(redis.call('HGET', waiting, head))
  local left = redis.call('ZSCORE', due, head) - now_ms
  leave(head)
  local fence, since = give(head, whole(left), last, floor, owner)
  redis.call('PUBLISH', 'lock:release:' .. server, fence .. ' ' .. since .. ' ' .. head)
  local user, name, node = cmsgpack.unpack(owner)
  return {head, left, 0, fence, user, name, node, since}
end

