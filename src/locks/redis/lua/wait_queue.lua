-- The wait queue. scripts.rs puts this text before claim.lua and release.lua, and five constants
-- before it:
--   grant_ttl      how long Redis stores a grant, in ms
--   line_deadline  how long a waiter's entry lives without a poll, in ms
--   line_max       how many claims may wait
--   return_grace   the reassert grace, in ms
--   fence_end      the first fence that no script mints; a number, the others are texts
--
-- The scripts read only Redis's own clock. A waiter polls before its entry expires, or counts as
-- dead. The next script that reads the queue removes dead waiters.
--
-- After either script the lock is held if the queue has a living waiter: a script that finds the
-- lock free hands it to the first waiter, not to its caller. So no claim overtakes the queue, and a
-- poll finds a hand-over whose message was lost. The one exception is a Redis that restarted empty
-- or with an older state: there the holder may reassert first.
--
-- KEYS  1 the lock   2 its grant   3 the queue: waiters by arrival   4 when each entry expires
--       5 server, floor and owner of each waiter
local lock, grant, line, due, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)

-- Doubles are exact up to 2^53 (fence_end); µs since the epoch reach that in the year 2255. A fence
-- from there on could equal the next one, so a script refuses to mint it.
local function whole(number) return string.format('%.0f', number) end

-- Removes waiters from the queue.
local function leave(...)
  redis.call('ZREM', line, ...)
  redis.call('ZREM', due, ...)
  redis.call('HDEL', waiting, ...)
end

-- Removes dead waiters and returns the first living one, or false.
local function first()
  local head = redis.call('ZRANGE', line, 0, 0)[1]
  if not head then return false end
  local dead = redis.call('ZRANGEBYSCORE', due, '-inf', now_ms)
  if #dead == 0 then return head end
  leave(unpack(dead))
  return redis.call('ZRANGE', line, 0, 0)[1] or false
end

-- Grants the lock. The fence exceeds the last one, Redis's clock and the fence that the database
-- ratified; so it rises even if any two of the three are lost. The reclaim token belongs to this
-- grant alone: the token of the previous grant is void from now on.
--
-- The claimant packs the owner into one text: user id, name, node and reclaim token.
local function give(value, ttl, last, floor, owner)
  local fence = math.max(now, (tonumber(last) or 0) + 1, floor + 1)
  if fence_end <= fence then
    error({err = 'FENCE the next fence is beyond 2^53: the clock was, or a key was set by hand'})
  end
  fence = whole(fence)
  local since = whole(now)
  redis.call('SET', lock, value, 'PX', ttl)
  redis.call('HSET', grant, 'value', value, 'fence', fence, 'since', since, 'owner', owner)
  redis.call('PEXPIRE', grant, grant_ttl)
  return fence, since
end

-- Hands the lock over to the first waiter and notifies only its server, with fence, time of the
-- grant and value. The lease is the rest of the waiter's entry. A living waiter extends it to the
-- full TTL within that time; a dead one delays the others no longer than its entry would have.
-- Returns the holder.
local function pass_on(head, last)
  local server, floor, owner = cmsgpack.unpack(redis.call('HGET', waiting, head))
  local left = redis.call('ZSCORE', due, head) - now_ms
  leave(head)
  local fence, since = give(head, whole(left), last, floor, owner)
  redis.call('PUBLISH', 'lock:release:' .. server, fence .. ' ' .. since .. ' ' .. head)
  local user, name, node = cmsgpack.unpack(owner)
  return {head, left, 0, fence, user, name, node, since}
end

