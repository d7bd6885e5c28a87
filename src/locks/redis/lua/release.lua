-- Releases a lock if this value holds it, and removes the value from the queue. A freed lock is
-- handed over to the first waiter.
--
-- One script compares and hands over; otherwise a release could free another holder's lock. A late
-- renewal must not raise a released lock: the fence moves past that of the grant. The grant also
-- stores the released value, which holds even if Redis restarted empty in between and has no fence
-- to move. There the release of a waiter overwrites it: a renewal of the holder that arrives after both
-- sets the lock again. Its session has ended, so the lock is free after one lease (locks::model).
--
-- During the reassert grace (claim.lua) no waiter gets the lock: the holder of a later grant may
-- reassert. The first waiter finds the lock free after that.
--
-- Arguments
--       value
--       rest     for how many ms more no claim gets the lock, although its holder released it; or nil
-- Returns 1 if it was held, 0 if it was not
local function release(value, rest)
  local held = call('GET', lock)
  local head = first()
  if head then
    -- Also the holder's own entry, which an older state of Redis may contain.
    leave(value)
    if head == value then head = first() end
  end
  if held and held ~= value then return 0 end
  if held and not rest and not head then
    -- The usual case, with the fewest commands. A stored grant already has its expiry.
    call('DEL', lock)
    if call('HSET', grant, 'value', '', 'released', value) == 2 then
      call('PEXPIRE', grant, grant_ttl)
    end
    return 1
  end

  local last = call('HMGET', grant, 'value', 'fence', 'owner')
  local is_its = last[1] == value
  if head and (0 < any_grace or held and rest or not held and not last[2]) then head = false end
  if head and not held then
    -- The database ratified a later grant than this one.
    local _server, floor = cmsgpack.unpack(call('HGET', waiting, head))
    if (tonumber(last[2]) or 0) < tonumber(floor) then head = false end
  end
  if head then
    pass_on(head, last[2])
  elseif held and rest then
    -- Under another value, which no renewal can extend.
    local done = value .. '.done'
    call('SET', lock, done, 'PX', rest)
    if is_its then
      local user, name, node = cmsgpack.unpack(last[3])
      call('HSET', grant, 'value', done, 'owner', cmsgpack.pack(user, name, node, ''))
    end
  else
    if held then call('DEL', lock) end
    if is_its then call('HSET', grant, 'value', '') end
  end
  call('HSET', grant, 'released', value)
  if not last[2] then call('PEXPIRE', grant, grant_ttl) end
  return held and 1 or 0
end

