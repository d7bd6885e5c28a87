-- Claims, releases and single renewals in one call.
--
-- scripts.rs puts claim.lua and release.lua before this text, each as a function with
-- wait_queue.lua at its head. This text handles the usual cases with the fewest commands: a claim
-- of a free lock without waiters, and a release by the holder, with a hand-over to the first waiter
-- if there is one. It leaves all other cases to those functions. It is one long loop because every
-- claim runs through it: another function costs as much as a command, and so does another
-- concatenation.
--
-- Calls are independent of each other. Each gets the reply that it would get alone, in this order.
--
-- KEYS  the locks of all, the grants of all, and so on with the five of wait_queue.lua
-- ARGV  of each: 'claim', 'wait' or 'release' with the arguments of claim.lua or release.lua, or
--       'keep' with a value and a ttl in ms: renews the lease if that value still holds it.
--       Packed; trailing arguments with their usual value are omitted.
--       Then, during a reassert grace: its rest in ms for any lock, and for a lock whose floor shows
--       an earlier grant
-- Returns the reply of each; of a plain claim the fence alone, as a number, if it is also the time of
--       the grant. After an error the rest has no replies: the caller sends each of those again, alone.
local call, try, format = redis.call, redis.pcall, string.format
local count = #KEYS / 5
local no_grace = #ARGV == count
local any, given = 0, 0
if not no_grace then any, given = tonumber(ARGV[count + 1]), tonumber(ARGV[count + 2]) end
local answers, now, since = {}, nil, nil

-- Whether all queues are empty, by one query.
local are_empty = 1 < count and call('EXISTS', unpack(KEYS, 2 * count + 1, 3 * count)) == 0

-- Reads the clock once, and returns a fence as in wait_queue.lua, as a number and as a text. Both
-- arguments are numbers.
local function mint(last, floor)
  if not now then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
    since = format('%.0f', now)
  end
  local fence = math.max(now, last + 1, floor + 1)
  return fence, fence == now and since or format('%.0f', fence)
end

for i = 1, count do
  local what, value, ttl, floor, owner, from, whose, server, came, remembers =
    cmsgpack.unpack(ARGV[i])
  local lock, grant, line, answer = KEYS[i], KEYS[count + i], KEYS[2 * count + i], nil

  if what == 'claim' then
    local last = try('HMGET', grant, 'fence', 'released')
    -- A stored fence below the floor is a sign of an older state, or of an eviction: claim.lua
    -- decides.
    local stored, low = tonumber(last[1]) or 0, tonumber(floor)
    if no_grace and not last.err and last[2] ~= value and (low <= stored or not last[1])
      and (are_empty or call('EXISTS', line) == 0)
      and call('SET', lock, value, 'NX', 'PX', ttl) then
      local fence, text = mint(stored, low)
      if fence < fence_end then
        call('HSET', grant, 'value', value, 'fence', text, 'since', since, 'owner', owner)
        call('PEXPIRE', grant, grant_ttl)
        answer = fence == now and fence or {1, text, since, false}
      else
        -- Undoes the SET; claim.lua returns the error.
        call('DEL', lock)
      end
    end
  elseif what == 'release' and ttl == nil and try('GET', lock) == value then
    local head = not are_empty and call('ZRANGE', line, 0, 0)[1]
    if head and (0 < any or head == value) then
      -- release.lua decides: the state may be an older one.
    elseif not head then
      -- The grant then has no holder, and the value is spent: neither a late renewal nor a late
      -- claim can raise the lock.
      call('DEL', lock)
      -- A stored grant already has its expiry.
      if call('HSET', grant, 'value', '', 'released', value) == 2 then
        call('PEXPIRE', grant, grant_ttl)
      end
      answer = 1
    else
      -- As pass_on in wait_queue.lua, if the first waiter is alive.
      local due, waiting = KEYS[3 * count + i], KEYS[4 * count + i]
      server, floor, owner = cmsgpack.unpack(call('HGET', waiting, head))
      local fence, text = mint(tonumber(call('HGET', grant, 'fence')) or 0, tonumber(floor))
      local left = call('ZSCORE', due, head) - math.floor(now / 1000)
      if 0 < left and fence < fence_end then
        call('SET', lock, head, 'PX', format('%.0f', left))
        call('PUBLISH', 'lock:release:' .. server, text .. ' ' .. since .. ' ' .. head)
        call('HSET', grant, 'value', head, 'fence', text, 'since', since, 'owner', owner,
          'released', value)
        call('PEXPIRE', grant, grant_ttl)
        call('ZREM', line, head)
        call('ZREM', due, head)
        call('HDEL', waiting, head)
        answer = 1
      end
    end
  elseif what == 'keep' then
    answer = try('GET', lock) == value and call('PEXPIRE', lock, ttl) or 0
  end

  if not answer then
    local keys = {lock, grant, line, KEYS[3 * count + i], KEYS[4 * count + i]}
    are_empty = are_empty and what ~= 'wait'
    local is_well, result
    if what == 'release' then
      is_well, result = pcall(release, keys, any, value, ttl)
    else
      -- The grace for a young Redis applies to locks without a grant only; fences decide about the
      -- others.
      remembers = math.max(tonumber(remembers or 0), floor == '0' and 0 or given)
      is_well, result = pcall(claim, keys, any, remembers, value, ttl, floor, owner, from, whose,
        server, came)
    end
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
