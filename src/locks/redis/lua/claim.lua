-- Gives a lock to who asks, if it is free and nobody was there before, theirs already, or may be
-- taken over. Or lets them stand in the line.
--
-- One script, so that nobody can come between the look and the taking, nor between the look and
-- the place in the line. It may run twice: a claim repeated with the same value gets the same
-- fence, or keeps its place, so an answer that was lost can be asked again. For who waits it is
-- sign of life, backstop and attempt in one.
--
-- A value that was released is spent. So a claim that was given up, and taken back, and is carried
-- out only now, when Redis gets to it, takes nothing.
--
-- Asked with
--       grace      for how many ms any holder may still come back: Redis restarted or failed over, and
--                  its state may be empty or older than the last grants
--       remembers  the same in ms, for a lock of which Redis has no grant: it started as late as the
--                  asking process, or a waiter saw a holder
--       value, ttl in ms, floor
--       owner      as in wait_queue.lua
--       from       'nobody', 'value', 'user' or 'pass': from whom it may be taken; nil for nobody
--       whose      that value or pass
--       server     the one to tell if it waits in the line, or nil if it does not wait
--       came       when it came before, in µs, or 0
-- Gives {1, fence, since in µs, who lost it or false}, or {0, holder or false, place, arrival}, or
--       {-1} if the value is spent. The place counts from 1; 0 is not in the line, -1 is a line
--       that is full. No holder is a lock that is left to who may come back to it.
--       A holder is {value, ttl in ms, how many wait, fence, user, name, node, since}, or the
--       first three if its grant is not there: the key was set by hand.
local held = redis.call('GET', lock)
local last = redis.call('HMGET', grant, 'value', 'fence', 'since', 'owner', 'released', 'older')
local told = held and last[1] == held

-- A fence that the database refused is not given again: the claimant comes back with its floor.
if told and held == value and tonumber(floor) < tonumber(last[2]) then
  redis.call('PEXPIRE', lock, ttl)
  redis.call('PEXPIRE', grant, kept)
  return {1, last[2], last[3], false}
end

if last[5] == value then return {-1} end

-- A place in the line, old or new. Who was taken out of it comes back to where it stood, and an
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

-- Whether the lock is left to a holder who may come back.
--
-- During the grace the state of Redis may be older than a grant that the database ratified. Each
-- holder asserts its lock then (reassert.lua), so no script gives a lock before the grace ends. After
-- the grace one sign remains: the database ratified a higher fence (floor) than Redis remembers. The
-- grant stores when a script first saw that sign, and the lock is left for the same time.
--
-- A floor exactly one higher is an eviction of this grant (vacate in `storage`), and no later grant. A
-- later grant has the time of this clock as its fence, unless the clock stepped back below the last fence.
-- While the clock stands below the floor, the two look alike, and the lock is left.
local function is_left()
  if 0 < grace then return true end
  if not last[2] then return 0 < remembers end
  local known, ratified = tonumber(last[2]) or 0, tonumber(floor)
  if ratified <= known or (ratified == known + 1 and ratified < now) then return false end
  local fence, since = string.match(last[6] or '', '^(%d+) (%d+)$')
  if fence ~= last[2] then
    since = whole(now_ms)
    redis.call('HSET', grant, 'older', last[2] .. ' ' .. since)
  end
  local age = now_ms - tonumber(since)
  return 0 <= age and age < tonumber(return_grace)
end

local function busy(holder)
  local place, arrival = 0, '0'
  if server then place, arrival = join() end
  if holder then holder[3] = redis.call('ZCARD', line) end
  return {0, holder, place, arrival}
end

local head = first()
local holder = false
if held and held ~= value then
  holder = {held, redis.call('PTTL', lock), 0}
  local is_same_user, is_pass
  if told then
    local user, name, node, pass = cmsgpack.unpack(last[4])
    holder = {held, holder[2], 0, last[2], user, name, node, last[3]}
    is_same_user, is_pass = user == cmsgpack.unpack(owner), pass == whose
  end
  local may_take = (from == 'value' and held == whose)
    or (from == 'user' and is_same_user)
    or (from == 'pass' and is_same_user and is_pass)
  if not may_take then return busy(holder) end
  -- The holder of the last ratified grant may be another one, who comes back.
  if told and is_left() then return busy(false) end
elseif not held and is_left() then
  return busy(false)
elseif not held and head and head ~= value then
  return busy(pass_on(head, last[2]))
end

if server then leave(value) end
local fence, since = give(value, ttl, last[2], floor, owner)
if holder then holder[3] = redis.call('ZCARD', line) end
return {1, fence, since, holder}
