-- Grants a lock to a claimant: if it is free and has no earlier waiter, if the claimant holds it
-- already, or by takeover. Otherwise the claim may join the wait queue.
--
-- One script makes the read and the write of lock and queue atomic. It may run twice: a repeated
-- claim with the same value gets the same fence, or retains its position, so a caller may retry
-- after a lost reply. For a waiter it is heartbeat, backstop and attempt at once.
--
-- A released value is spent. So a claim that its caller gave up and released acquires nothing if
-- Redis executes it only later.
--
-- Arguments
--       grace      the reassert grace in ms: Redis restarted or failed over, and its state may be empty or
--                  older than the last grants
--       remembers  the same in ms, for a lock of which Redis has no grant: Redis started as late as the
--                  calling process, or a waiter observed a holder
--       value, ttl in ms, floor
--       owner      as in wait_queue.lua
--       from       the takeover that is permitted: `nobody` (none), `value`, `user` or `pass`; nil
--                  for none
--       whose      that value or reclaim token
--       server     the server to notify if the claim waits, or nil if it does not wait
--       came       the claim's earlier arrival in µs, or 0
-- Returns {1, fence, since in µs, the replaced holder or false}, or {0, holder or false, position,
--       arrival}, or {-1} if the value is spent. The position counts from 1; 0 is not in the queue,
--       -1 is a full queue. No holder means that the lock is left to a holder who may reassert it.
--       A holder is {value, ttl in ms, number of waiters, fence, user, name, node, since}, or the
--       first three if its grant is missing: an operator set the key.
local held = redis.call('GET', lock)
local last = redis.call('HMGET', grant, 'value', 'fence', 'since', 'owner', 'released', 'older')
local has_grant = held and last[1] == held

-- A fence that the database refused is not returned again: the claimant retries with its floor.
if has_grant and held == value and tonumber(floor) < tonumber(last[2]) then
  redis.call('PEXPIRE', lock, ttl)
  redis.call('PEXPIRE', grant, grant_ttl)
  return {1, last[2], last[3], false}
end

if last[5] == value then return {-1} end

-- Adds or extends the waiter's entry. A claim that was removed returns to its earlier position. An
-- arrival is never before the last one, even if the clock stepped back.
local function join()
  local arrival = redis.call('ZSCORE', line, value)
  if not arrival then
    if tonumber(line_max) <= redis.call('ZCARD', line) then return -1, '0' end
    arrival = tonumber(came)
    if arrival == 0 then
      local tail = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]
      arrival = math.max(now, (tonumber(tail) or 0) + 1)
    end
    redis.call('ZADD', line, whole(arrival), value)
    redis.call('HSET', waiting, value, cmsgpack.pack(server, floor, owner))
  end
  redis.call('ZADD', due, whole(now_ms + line_deadline), value)
  for _, key in ipairs({line, due, waiting}) do redis.call('PEXPIRE', key, 2 * line_deadline) end
  return redis.call('ZRANK', line, value) + 1, whole(tonumber(arrival))
end

-- Whether the lock is left to a holder who may reassert it.
--
-- During the reassert grace the state of Redis may be older than a grant that the database
-- ratified. Each holder reasserts its lock then (reassert.lua), so no script grants a lock before
-- the grace ends. After the grace one sign remains: the database ratified a higher fence (floor)
-- than Redis stores. The grant records when a script first saw that sign, and the lock is left for
-- the same time.
--
-- A floor exactly one higher is an eviction of this grant (vacate in `storage`), and no later
-- grant. A later grant has the time of this clock as its fence, unless the clock stepped back below
-- the last fence. While the clock stands below the floor, the two look alike, and the lock is left.
local function is_left()
  if 0 < grace then return true end
  if not last[2] then return 0 < remembers end
  local stored, ratified = tonumber(last[2]) or 0, tonumber(floor)
  if ratified <= stored or (ratified == stored + 1 and ratified < now) then return false end
  local fence, since = string.match(last[6] or '', '^(%d+) (%d+)$')
  if fence ~= last[2] then
    since = whole(now_ms)
    redis.call('HSET', grant, 'older', last[2] .. ' ' .. since)
  end
  local age = now_ms - tonumber(since)
  return 0 <= age and age < tonumber(return_grace)
end

local function busy(holder)
  local position, arrival = 0, '0'
  if server then position, arrival = join() end
  if holder then holder[3] = redis.call('ZCARD', line) end
  return {0, holder, position, arrival}
end

local head = first()
local holder = false
if held and held ~= value then
  holder = {held, redis.call('PTTL', lock), 0}
  local is_same_user, is_pass
  if has_grant then
    local user, name, node, pass = cmsgpack.unpack(last[4])
    holder = {held, holder[2], 0, last[2], user, name, node, last[3]}
    is_same_user, is_pass = user == cmsgpack.unpack(owner), pass == whose
  end
  local may_take = (from == 'value' and held == whose)
    or (from == 'user' and is_same_user)
    or (from == 'pass' and is_same_user and is_pass)
  if not may_take then return busy(holder) end
  -- The last ratified grant may have another holder, who reasserts.
  if has_grant and is_left() then return busy(false) end
elseif not held and is_left() then
  return busy(false)
elseif not held and head and head ~= value then
  return busy(pass_on(head, last[2]))
end

if server then leave(value) end
local fence, since = give(value, ttl, last[2], floor, owner)
if holder then holder[3] = redis.call('ZCARD', line) end
return {1, fence, since, holder}
