-- Returns the holder of each lock, and the number of its waiters.
--
-- One script and not three commands: the holder could change between the read of the lock and the
-- read of its grant. The reply would then name one user with another's value.
--
-- KEYS  of each: the lock, its grant, and the expiry of its waiters' entries
-- Returns for each a holder, as in claim.lua, or false. A key that is no text was set by hand: its
--       holder has no value, and an error would hide all others.
local time = redis.call('TIME')
local now_ms = string.format('(%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local holders = {}
for i = 1, #KEYS / 3 do
  local lock, grant, due = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then held = '' end
  local holder = false
  if held then
    local waiting = redis.pcall('ZCOUNT', due, now_ms, '+inf')
    if type(waiting) == 'table' then waiting = 0 end
    holder = {held, redis.call('PTTL', lock), waiting}
    local last = redis.pcall('HMGET', grant, 'value', 'fence', 'since', 'owner')
    if last[1] == held and last[4] then
      local user, name, node = cmsgpack.unpack(last[4])
      holder = {held, holder[2], waiting, last[2], user, name, node, last[3]}
    end
  end
  holders[i] = holder
end
return holders
