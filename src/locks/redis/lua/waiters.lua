-- Lists the waiters of a lock in order, for administrators. It is read-only, so it skips dead
-- waiters and does not remove them.
--
-- KEYS  1 the queue   2 when each entry expires   3 server, floor and owner of each waiter
-- ARGV  1 the most rows
-- Returns {user, name, node, arrival in µs} for each
local line, due, waiting = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local members, rows = redis.call('ZRANGE', line, 0, ARGV[1] - 1, 'WITHSCORES'), {}
for i = 1, #members, 2 do
  local ends = redis.call('ZSCORE', due, members[i])
  local stored = redis.call('HGET', waiting, members[i])
  if stored and ends and now_ms < tonumber(ends) then
    local _server, _floor, owner = cmsgpack.unpack(stored)
    local user, name, node = cmsgpack.unpack(owner)
    rows[#rows + 1] = {user, name, node, string.format('%.0f', members[i + 1])}
  end
end
return rows
