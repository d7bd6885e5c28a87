-- Tells who has each of these locks, and how many wait for it.
--
-- A script and not three commands: between a look at the lock and one at its grant the holder
-- could change, and the answer would name one person with the secret of another.
--
-- KEYS  of each: the lock, its grant, and until when those in its line are believed to live
-- Gives for each a holder, as in claim.lua, or false. A key that is no text was set by hand: its
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
