-- The wait queue, and the grant of a lock. scripts.rs puts five constants before this text, and
-- claim.lua, release.lua and one_lock.lua after it:
--   grant_ttl      how long Redis stores a grant, in ms
--   queue_entry_ttl  how long a waiter's entry lives without a poll, in ms
--   queue_length_max       how many claims may wait
--   reassert_grace   the reassert grace, in ms
--   fence_end      the first fence that no script mints; a number, the others are texts
--
-- The scripts read only Redis's own clock, once a call. A waiter polls before its entry expires, or
-- counts as dead. The next script that reads the queue removes dead waiters.
--
-- After each claim or release the lock is held if the queue has a living waiter: a script that finds
-- the lock free hands it to the first waiter, not to its caller. So no claim overtakes the queue, and a
-- poll finds a hand-over whose message was lost. The one exception is a Redis that restarted empty
-- or with an older state: there the holder may reassert first.
local call = redis.call

-- The keys: the lock, its grant, the queue (waiters by arrival), when each entry expires,
-- and server, floor and owner of each waiter.
local lock, grant, line, due, waiting

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)

-- The rest of the reassert grace in ms: of any lock, and of a lock whose floor shows an earlier grant.
local any_grace, earlier_grace = 0, 0

-- Doubles are exact up to 2^53 (fence_end); µs since the epoch reach that in the year 2255. A fence
-- from there on could equal the next one, so a script refuses to mint it.
local function whole(number) return string.format('%.0f', number) end
local since = whole(now)

-- Removes waiters from the queue.
local function leave(...)
  if call('ZREM', line, ...) == 0 then return end
  call('ZREM', due, ...)
  call('HDEL', waiting, ...)
end

-- Removes dead waiters and returns the first living one, or false.
local function first()
  local head = call('ZRANGE', line, 0, 0)[1]
  if not head then return false end
  local dead = call('ZRANGEBYSCORE', due, '-inf', now_ms)
  if #dead == 0 then return head end
  leave(unpack(dead))
  return call('ZRANGE', line, 0, 0)[1] or false
end

-- Returns the next fence, or nil from fence_end on. The fence exceeds the last one, Redis's clock and
-- the fence that the database ratified; so it rises even if any two of the three are lost.
local function mint(last, floor)
  local fence = math.max(now, (tonumber(last) or 0) + 1, floor + 1)
  return fence < fence_end and whole(fence) or nil
end

-- Stores the grant. The reclaim token belongs to this grant alone: the token of the previous grant is
-- void from now on. The claimant packs the owner into one text: user id, name, node and reclaim
-- token.
local function record(value, fence, owner)
  call('HSET', grant, 'value', value, 'fence', fence, 'since', since, 'owner', owner)
  call('PEXPIRE', grant, grant_ttl)
end

-- Grants the lock and returns the fence.
local function give(value, ttl, last, floor, owner)
  local fence = mint(last, floor)
  if not fence then
    error({err = 'FENCE the next fence is beyond 2^53: the clock was, or a key was set by hand'})
  end
  call('SET', lock, value, 'PX', ttl)
  record(value, fence, owner)
  return fence
end

-- Hands the lock over to the first waiter and notifies only its server, with fence, time of the
-- grant and value. The lease is the rest of the waiter's entry. A living waiter extends it to the
-- full TTL within that time; a dead one delays the others no longer than its entry would have.
-- Returns the holder.
local function pass_on(head, last)
  local server, floor, owner = cmsgpack.unpack(call('HGET', waiting, head))
  local left = call('ZSCORE', due, head) - now_ms
  leave(head)
  local fence = give(head, whole(left), last, floor, owner)
  call('PUBLISH', 'lock:release:' .. server, fence .. ' ' .. since .. ' ' .. head)
  local user, name, node = cmsgpack.unpack(owner)
  return {head, left, 0, fence, user, name, node, since}
end

