-- Claims and releases that come at the same time, in one call.
--
-- claim.lua and release.lua stand before this, each as a function with line.lua at its head. What is
-- so nearly always is done here, with as few commands as it can be: nobody has the lock, nobody waits
-- for it, and it is taken; or it is held and given back, to the first in the line if there is one.
-- Whatever is not as plain as that is left to those two. It is one long loop because every claim goes
-- through it: a function more costs what a command does.
--
-- Calls are independent of each other, and are answered as if each had come alone and in this order.
--
-- KEYS  of each: the five of its lock, as in line.lua
-- ARGV  of each: 'claim', 'wait' or 'release' with the arguments of claim.lua or release.lua, or
--       'keep' with a value and a ttl in ms: a lease that runs anew, if it is still that value's.
--       Both packed, the arguments as an array
-- Gives the answer of each. If one fails there are no more: whoever called asks again for it, and
--       for those after it, alone.
local call, try, format = redis.call, redis.pcall, string.format
local answers, now, since = {}, nil, nil

-- Whether nobody waits for any of them, asked once for all.
local lines, are_empty = {}, false
if 1 < #ARGV then
  for i = 1, #ARGV do lines[i] = KEYS[5 * i - 2] end
  are_empty = call('EXISTS', unpack(lines)) == 0
end

-- Reads the clock once, and gives a fence as in line.lua.
local function mint(last, floor)
  if not now then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
    since = format('%.0f', now)
  end
  local fence = math.max(now, (tonumber(last) or 0) + 1, floor + 1)
  return fence == now and since or format('%.0f', fence)
end

for i = 1, #ARGV do
  local what, args = cmsgpack.unpack(ARGV[i])
  local at, value = 5 * i - 4, args[1]
  local lock, grant, line, due, waiting, answer =
    KEYS[at], KEYS[at + 1], KEYS[at + 2], KEYS[at + 3], KEYS[at + 4], nil

  if what == 'claim' then
    local last = try('HMGET', grant, 'fence', 'released')
    if not last.err and last[2] ~= value and (last[1] or args[15] == '0')
      and (are_empty or call('EXISTS', line) == 0)
      and call('SET', lock, value, 'NX', 'PX', args[2]) then
      local fence = mint(last[1], args[3])
      call('HSET', grant, 'value', value, 'fence', fence, 'user', args[4], 'name', args[5],
        'node', args[6], 'since', since, 'pass', args[10])
      call('PEXPIRE', grant, args[9])
      answer = {1, fence, since, false}
    end
  elseif what == 'release' and args[3] == '0' and try('GET', lock) == value then
    local head = not are_empty and call('ZRANGE', line, 0, 0)[1]
    if not head then
      -- The grant is nobody's then, and the value is spent: neither a renewal that is late nor a
      -- claim that is carried out only now can raise it.
      call('DEL', lock)
      -- A grant that was there is remembered long enough as it is.
      if call('HSET', grant, 'value', '', 'pass', '', 'released', value) == 3 then
        call('PEXPIRE', grant, args[2])
      end
      answer = 1
    else
      -- As pass_on in line.lua, if the first is alive.
      local server, user, name, node, floor, pass =
        unpack(cmsgpack.unpack(call('HGET', waiting, head)))
      local fence = mint(call('HGET', grant, 'fence'), floor)
      local left = call('ZSCORE', due, head) - math.floor(now / 1000)
      if 0 < left then
        call('SET', lock, head, 'PX', format('%.0f', left))
        call('PUBLISH', 'lock:release:' .. server, fence .. ' ' .. since .. ' ' .. head)
        call('HSET', grant, 'value', head, 'fence', fence, 'user', user, 'name', name,
          'node', node, 'since', since, 'pass', pass or '', 'released', value)
        call('PEXPIRE', grant, args[2])
        call('ZREM', line, head)
        call('ZREM', due, head)
        call('HDEL', waiting, head)
        answer = 1
      end
    end
  elseif what == 'keep' then
    answer = try('GET', lock) == value and call('PEXPIRE', lock, args[2]) or 0
  end

  if not answer then
    local keys = {lock, grant, line, due, waiting}
    are_empty = are_empty and what ~= 'wait'
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
