-- Renews many locks at once.
--
-- This is what Redis does most, so it does the least: one MGET, one PEXPIRE for each, and an answer
-- of one byte for each. What is gone or somebody else's is for another script (reassert.lua), which
-- needs to know more.
--
-- KEYS  the locks
-- ARGV  1 ttl in ms   2… the value of each
-- Gives a string with one byte for each: '1' renewed, '0' somebody else's, '-' gone
local ttl, verdicts = ARGV[1], {}
local held = redis.call('MGET', unpack(KEYS))
for i, key in ipairs(KEYS) do
  if held[i] == ARGV[i + 1] then
    redis.call('PEXPIRE', key, ttl)
    verdicts[i] = '1'
  elseif held[i] then
    verdicts[i] = '0'
  else
    verdicts[i] = '-'
  end
end
return table.concat(verdicts)
