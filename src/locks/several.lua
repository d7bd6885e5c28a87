-- Claims and releases that come at the same time, in one call.
--
-- claim.lua and release.lua stand before this, each as a function with line.lua at its head. What is
-- so nearly always is done here: nobody has the lock, nobody waits for it, and it is taken; or it is
-- held, nobody waits, and it is given back. Whatever is not as plain as that is left to those two.
-- It is one long loop because every claim goes through it: a function more costs what a command does.
--
-- Calls are independent of each other, and are answered as if each had come alone and in this order.
--
-- KEYS  of each: the five of its lock, as in line.lua
-- ARGV  of each: 'claim', 'wait' or 'release' with the arguments of claim.lua or release.lua, or
--       'keep' with a value and a ttl in ms: a lease that runs anew, if it is still that value's.
--       Both packed, the arguments as an array
-- Gives the answer of each. If one fails there are no more: whoever called asks again for it, and
--       for those after it, alone.
local call, try = redis.call, redis.pcall
local answers, now, since = {}, nil, nil

for i = 1, #ARGV do
  local what, args = cmsgpack.unpack(ARGV[i])
  local at, value = 5 * i - 4, args[1]
  local lock, grant, line, answer = KEYS[at], KEYS[at + 1], KEYS[at + 2], nil

  if what == 'claim' then
    local last = try('HMGET', grant, 'fence', 'released')
    if not last.err and last[2] ~= value and call('EXISTS', line) == 0
      and call('SET', lock, value, 'NX', 'PX', args[2]) then
      if not now then
        local time = call('TIME')
        now = time[1] * 1000000 + time[2]
        since = string.format('%.0f', now)
      end
      -- As in line.lua.
      local fence, least = since, math.max((tonumber(last[1]) or 0) + 1, args[3] + 1)
      if now < least then fence = string.format('%.0f', least) end
      call('HSET', grant, 'value', value, 'fence', fence, 'user', args[4], 'name', args[5],
        'node', args[6], 'since', since)
      call('PEXPIRE', grant, args[9])
      answer = {1, fence, since, false}
    end
  elseif what == 'release' and args[3] == '0' and try('GET', lock) == value
    and call('EXISTS', line) == 0 then
    -- The grant is nobody's then, and the value is spent: neither a renewal that is late nor a
    -- claim that is carried out only now can raise it.
    call('DEL', lock)
    call('HSET', grant, 'value', '', 'released', value)
    call('PEXPIRE', grant, args[2])
    answer = 1
  elseif what == 'keep' then
    answer = try('GET', lock) == value and call('PEXPIRE', lock, args[2]) or 0
  end

  if not answer then
    local keys = {lock, grant, line, KEYS[at + 3], KEYS[at + 4]}
    local is_well, result = pcall(what == 'release' and release or claim, keys, args)
    if is_well then
      answer = result
    elseif i == 1 then
      -- A text in some versions, a table in others.
      return {err = type(result) == 'table' and result.err or result}
    else
      return answers
    end
  end
  answers[i] = answer
end
return answers
