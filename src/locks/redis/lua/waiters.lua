-- Tells who waits for a lock, the first first. For people who ask why it is held; it changes
-- nothing, so the dead are passed over and not taken out.
--
-- KEYS  1 the line   2 until when each is believed to live   3 what is known of each
-- ARGV  1 how many at the most
-- Gives for each {user, name, node, arrival in µs}
local line, due, waiting = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local members, rows = redis.call('ZRANGE', line, 0, ARGV[1] - 1, 'WITHSCORES'), {}
for i = 1, #members, 2 do
  local ends = redis.call('ZSCORE', due, members[i])
  local known = redis.call('HGET', waiting, members[i])
  if known and ends and now_ms < tonumber(ends) then
    local _server, _floor, owner = cmsgpack.unpack(known)
    local user, name, node = cmsgpack.unpack(owner)
    rows[#rows + 1] = {user, name, node, string.format('%.0f', members[i + 1])}
  end
end
return rows
