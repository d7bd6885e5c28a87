-- Tells who has each of these locks.
--
-- A script and not three commands: between a look at the lock and one at its grant the holder
-- could change, and the answer would name one person with the secret of another.
--
-- KEYS  the lock and the grant of each
-- Gives for each a holder, as in claim.lua, or false. A key that is no text was set by hand: its
--       holder has no value, and an error would hide all others.
local holders = {}
for i = 1, #KEYS / 2 do
  local lock, grant = KEYS[2 * i - 1], KEYS[2 * i]
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then held = '' end
  local holder = false
  if held then
    holder = {held, redis.call('PTTL', lock)}
    local last = redis.pcall('HMGET', grant, 'value', 'fence', 'user', 'name', 'node', 'since')
    if last[1] == held then
      for j = 2, 6 do holder[j + 1] = last[j] end
    end
  end
  holders[i] = holder
end
return holders
