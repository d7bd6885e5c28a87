-- Renews many locks at once.
--
-- Redis runs this script most often, so it does the least: one MGET, one PEXPIRE for each lock, and
-- one byte of reply for each. A lock that is gone or has another value is left to reassert.lua,
-- which needs the grant.
--
-- KEYS  the locks
-- ARGV  1 ttl in ms   2… the value of each
-- Returns a string with one byte for each: '1' renewed, '0' another value holds it, '-' gone
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
