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
-- A lock that is free and has no waiter costs the fewest commands: one script runs all claims of a
-- storm of joins.
--
-- Arguments
--       value, ttl in ms, floor
--       owner      as in wait_queue.lua
--       from       the takeover that is permitted: `value`, `user`, `pass`, or none (another text, nil)
--       whose      that value or reclaim token
--       server     the server to notify if the claim waits, or nil if it does not wait
--       came       the claim's earlier arrival in µs, or 0
--       remembers  the reassert grace in ms for a lock of which Redis has no grant: the waiter observed
--                  a holder; or nil
-- Returns {1, fence, since in µs, the replaced holder or false}, or {0, holder or false, position,
--       arrival}, or {-1} if the value is spent. The position counts from 1; 0 is not in the queue,
--       -1 is a full queue. No holder means that the lock is left to a holder who may reassert it.
--       A holder is {value, ttl in ms, number of waiters, fence, user, name, node, since}, or the
--       first three if its grant is missing: an operator set the key.
local function claim(value, ttl, floor, owner, from, whose, server, came, remembers)
  local last = call('HMGET', grant, 'value', 'fence', 'since', 'owner', 'released', 'older')
  local stored, ratified = tonumber(last[2]) or 0, tonumber(floor)
  -- The grace for a young Redis applies to locks without a grant only; fences decide about the others.
  remembers = math.max(tonumber(remembers or 0), floor == '0' and 0 or earlier_grace)
  local is_current = any_grace == 0
    and (last[2] and ratified <= stored or not last[2] and remembers == 0)
  local head = first()

  if is_current and not head and last[5] ~= value then
    local fence = mint(last[2], floor)
    if fence and call('SET', lock, value, 'NX', 'PX', ttl) then
      record(value, fence, owner)
      return {1, fence, since, false}
    end
  end

  local held = call('GET', lock)
  local has_grant = held and last[1] == held

  -- A fence that the database refused is not returned again: the claimant retries with its floor.
  if has_grant and held == value and ratified < stored then
    call('PEXPIRE', lock, ttl)
    call('PEXPIRE', grant, grant_ttl)
    return {1, last[2], last[3], false}
  end

  if last[5] == value then return {-1} end

  -- Adds or extends the waiter's entry. A claim that was removed returns to its earlier position. An
  -- arrival is never before the last one, even if the clock stepped back.
  local function join()
    local arrival = call('ZSCORE', line, value)
    if not arrival then
      if tonumber(queue_length_max) <= call('ZCARD', line) then return -1, '0' end
      arrival = tonumber(came)
      if arrival == 0 then
        local tail = call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]
        arrival = math.max(now, (tonumber(tail) or 0) + 1)
      end
      call('ZADD', line, whole(arrival), value)
      call('HSET', waiting, value, cmsgpack.pack(server, floor, owner))
    end
    call('ZADD', due, whole(now_ms + queue_entry_ttl), value)
    for _, key in ipairs({line, due, waiting}) do call('PEXPIRE', key, 2 * queue_entry_ttl) end
    return call('ZRANK', line, value) + 1, whole(tonumber(arrival))
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
    if is_current then return false end
    if 0 < any_grace or not last[2] then return true end
    if ratified == stored + 1 and ratified < now then return false end
    local fence, noticed = string.match(last[6] or '', '^(%d+) (%d+)$')
    if fence ~= last[2] then
      noticed = whole(now_ms)
      call('HSET', grant, 'older', last[2] .. ' ' .. noticed)
    end
    local age = now_ms - tonumber(noticed)
    return 0 <= age and age < tonumber(reassert_grace)
  end

  local function busy(holder)
    local position, arrival = 0, '0'
    if server then position, arrival = join() end
    if holder then holder[3] = call('ZCARD', line) end
    return {0, holder, position, arrival}
  end

  local holder = false
  if held and held ~= value then
    holder = {held, call('PTTL', lock), 0}
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
  local fence = give(value, ttl, last[2], floor, owner)
  if holder then holder[3] = call('ZCARD', line) end
  return {1, fence, since, holder}
end

