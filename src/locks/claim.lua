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
-- ARGV  1 value   2 ttl in ms   3 floor   4 user   5 user's name   6 node
--       7 'nobody', 'value', 'user' or 'pass': from whom it may be taken   8 that value or pass
--       9 for how many ms a grant is remembered   10 its own pass, or ''
--       11 the server to tell if it waits in the line, or '' if it does not wait. Then:
--       12 for how many ms it is believed to live   13 when it came before, or 0
--       14 longest line
--       15 for how many ms a holder may still come back of whom Redis knows nothing
-- Gives {1, fence, since in µs, who lost it or false}, or {0, holder or false, place, arrival}, or
--       {-1} if the value is spent. The place counts from 1; 0 is not in the line, -1 is a line
--       that is full. No holder is a lock that is left to who may come back to it.
--       A holder is {value, ttl in ms, how many wait, fence, user, name, node, since}, or the
--       first three if its grant is not there: the key was set by hand.
local value, ttl, kept, waits = ARGV[1], ARGV[2], ARGV[9], ARGV[11] ~= ''
local held = redis.call('GET', lock)
local last = redis.call('HMGET', grant, 'value', 'fence', 'user', 'name', 'node', 'since', 'released',
  'pass')
local told = held and last[1] == held

-- A fence that the database refused is not given again: the claimant comes back with its floor.
if told and held == value and tonumber(ARGV[3]) < tonumber(last[2]) then
  redis.call('PEXPIRE', lock, ttl)
  redis.call('PEXPIRE', grant, kept)
  return {1, last[2], last[6], false}
end

if last[7] == value then return {-1} end

-- A place in the line, old or new. Who was taken out of it comes back to where it stood, and an
-- arrival is never before the last one, even if the clock stepped back.
local function join()
  local arrival = redis.call('ZSCORE', line, value)
  if not arrival then
    if tonumber(ARGV[14]) <= redis.call('ZCARD', line) then return -1, '0' end
    arrival = tonumber(ARGV[13])
    if arrival == 0 then
      local tail = redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]
      arrival = math.max(now, (tonumber(tail) or 0) + 1)
    end
    redis.call('ZADD', line, whole(arrival), value)
    redis.call('HSET', waiting, value,
      cmsgpack.pack({ARGV[11], ARGV[4], ARGV[5], ARGV[6], ARGV[3], ARGV[10]}))
  end
  redis.call('ZADD', due, whole(now_ms + ARGV[12]), value)
  for _, key in ipairs({line, due, waiting}) do redis.call('PEXPIRE', key, 2 * ARGV[12]) end
  return redis.call('ZRANK', line, value) + 1, whole(tonumber(arrival))
end

local function busy(holder)
  local place, arrival = 0, '0'
  if waits then place, arrival = join() end
  if holder then holder[3] = redis.call('ZCARD', line) end
  return {0, holder, place, arrival}
end

local head = first()
local holder = false
if held and held ~= value then
  holder = {held, redis.call('PTTL', lock), 0}
  if told then
    for i = 2, 6 do holder[i + 2] = last[i] end
  end
  local may_take = (ARGV[7] == 'value' and held == ARGV[8])
    or (ARGV[7] == 'user' and told and last[3] == ARGV[4])
    or (ARGV[7] == 'pass' and told and last[3] == ARGV[4] and last[8] == ARGV[8])
  if not may_take then return busy(holder) end
elseif not held and not last[2] and 0 < tonumber(ARGV[15]) then
  -- Redis came back empty, and the holder may be about to say that it is still there.
  return busy(false)
elseif not held and head and head ~= value then
  return busy(pass_on(head, last[2], kept))
end

if waits then leave(value) end
local fence, since = give(value, ttl, last[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[10],
  kept)
if holder then holder[3] = redis.call('ZCARD', line) end
return {1, fence, since, holder}
