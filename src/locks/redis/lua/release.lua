-- Releases a lock if this value holds it, and removes the value from the queue. A freed lock is
-- handed over to the first waiter.
--
-- One script compares and hands over; otherwise a release could free another holder's lock. A late
-- renewal must not raise a released lock: the fence moves past that of the grant. The grant also
-- stores the released value, which holds even if Redis restarted empty in between and has no fence
-- to move.
--
-- During the reassert grace (claim.lua) no waiter gets the lock: the holder of a later grant may
-- reassert. The first waiter finds the lock free after that.
--
-- Arguments
--       grace    the rest of the reassert grace of any lock, in ms
--       value
--       rest     for how many ms more no claim gets the lock, although its holder released it; or nil
-- Returns 1 if it was held, 0 if it was not
local held = redis.call('GET', lock)
-- Also the holder's own entry, which an older state of Redis may contain.
leave(value)
if held and held ~= value then return 0 end

local last = redis.call('HMGET', grant, 'value', 'fence', 'owner')
local is_its = last[1] == value
if held and rest then
  -- Under another value, which no renewal can extend.
  local done = value .. '.done'
  redis.call('SET', lock, done, 'PX', rest)
  if is_its then
    local user, name, node = cmsgpack.unpack(last[3])
    redis.call('HSET', grant, 'value', done, 'owner', cmsgpack.pack(user, name, node, ''))
  end
else
  local head = grace == 0 and (held or last[2]) and first()
  if head and not held then
    -- The database ratified a later grant than this one.
    local _server, head_floor = cmsgpack.unpack(redis.call('HGET', waiting, head))
    if (tonumber(last[2]) or 0) < tonumber(head_floor) then head = false end
  end
  if head then
    pass_on(head, last[2])
  else
    if held then redis.call('DEL', lock) end
    if is_its then
      redis.call('HDEL', grant, 'value', 'since', 'owner')
      redis.call('HINCRBY', grant, 'fence', 1)
    end
  end
end
redis.call('HSET', grant, 'released', value)
redis.call('PEXPIRE', grant, grant_ttl)
return held and 1 or 0
