-- Claims and releases that come at the same time, in one call.
--
-- claim.lua and release.lua stand before this, each as a function with line.lua at its head. What is
-- so nearly always is done here: nobody has the lock, nobody waits for it, and it is taken; or it is
-- held, nobody waits, and it is given back. Whatever is not as plain as that is left to those two.
--
-- What a call to a script costs by itself is most of what one claim costs. Calls are independent of
-- each other, and are answered as if each had come alone and in this order.
--
-- KEYS  of each: the five of its lock, as in line.lua
-- ARGV  of each: 'claim', 'wait' or 'release', and an array of the arguments of claim.lua or
--       release.lua, both packed
-- Gives the answer of each. If one fails there are no more: whoever called asks again for it, and
--       for those after it, alone.
local wanted = {claim = claim, wait = claim, release = release}
local now, since

local function take(lock, grant, line, args)
  local value, last = args[1], redis.call('HMGET', grant, 'fence', 'released')
  if last[2] == value or redis.call('EXISTS', line) == 1 then return false end
  if not redis.call('SET', lock, value, 'NX', 'PX', args[2]) then return false end
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
    since = string.format('%.0f', now)
  end
  local fence = since
  local least = math.max((tonumber(last[1]) or 0) + 1, args[3] + 1)
  if now < least then fence = string.format('%.0f', least) end
  redis.call('HSET', grant, 'value', value, 'fence', fence, 'user', args[4], 'name', args[5],
    'node', args[6], 'since', since)
  redis.call('PEXPIRE', grant, args[9])
  return {1, fence, since, false}
end

-- The grant is nobody's then, and its value is spent: neither a renewal that is late nor a claim
-- that is carried out only now can raise it.
local function give_back(lock, grant, line, args)
  local value = args[1]
  if args[3] ~= '0' or redis.call('GET', lock) ~= value then return false end
  if redis.call('EXISTS', line) == 1 then return false end
  redis.call('DEL', lock)
  redis.call('HSET', grant, 'value', '', 'released', value)
  redis.call('PEXPIRE', grant, args[2])
  return 1
end

local plainly = {claim = take, release = give_back}

local function answer(at, what, args)
  local plain = plainly[what]
  local done = plain and plain(KEYS[at], KEYS[at + 1], KEYS[at + 2], args)
  if done then return done end
  local keys = {KEYS[at], KEYS[at + 1], KEYS[at + 2], KEYS[at + 3], KEYS[at + 4]}
  return wanted[what](keys, args)
end

local answers = {}
for i, packed in ipairs(ARGV) do
  local is_well, result = pcall(answer, 5 * i - 4, cmsgpack.unpack(packed))
  if is_well then
    answers[i] = result
  elseif i == 1 then
    -- A text in some versions, a table in others.
    return {err = type(result) == 'table' and result.err or result}
  else
    return answers
  end
end
return answers
