-- Gives a lock back, if this value has it; takes it out of the line, if it waits there. What comes
-- free is handed to the first in the line.
--
-- Compared and given in one script, or it could free somebody else's lock. What is released may
-- not be raised again by a renewal that is late: the fence moves past that of the grant, and the
-- value is noted, which holds even if Redis came back empty in between and has no grant to move.
--
-- During the grace (claim.lua) nothing is handed to the line: the holder of a later grant may come
-- back. The first in the line finds the lock free after that.
--
-- Asked with
--       grace    for how many ms any holder may still come back
--       value
--       rest     for how many ms more nobody may have it, although its holder is done; or nil
-- Gives 1 if it was held, 0 if it was not
local held = redis.call('GET', lock)
-- Also the holder's own place, which an older state of Redis may contain.
leave(value)
if held and held ~= value then return 0 end

local last = redis.call('HMGET', grant, 'value', 'fence', 'owner')
local is_its = last[1] == value
if held and rest then
  -- Under another value, which no renewal can prolong.
  local done = value .. '.done'
  redis.call('SET', lock, done, 'PX', rest)
  if is_its then
    local user, name, node = cmsgpack.unpack(last[3])
    redis.call('HSET', grant, 'value', done, 'owner', cmsgpack.pack(user, name, node, ''))
  end
else
  local head = grace == 0 and (held or last[2]) and first()
  if head and not held then
    -- The database knows of a later grant than this one.
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
redis.call('PEXPIRE', grant, kept)
return held and 1 or 0
