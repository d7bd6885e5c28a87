-- Runs each command of the other scripts once, so that a missing right or command shows before a
-- claim needs it.
--
-- KEYS  one key of each kind that Galley uses
-- ARGV  1 the channel of this server
-- Returns Redis's time in µs
local time = redis.call('TIME')
cmsgpack.unpack(cmsgpack.pack({'1'}))
for _, key in ipairs(KEYS) do
  redis.call('SET', key, '1', 'PX', 1000)
  redis.call('EXISTS', key)
  redis.call('GET', key)
  redis.call('MGET', key)
  redis.call('PTTL', key)
  redis.call('PEXPIRE', key, 1000)
  redis.call('DEL', key)
  redis.call('HSET', key, 'a', '1')
  redis.call('HGET', key, 'a')
  redis.call('HMGET', key, 'a')
  redis.call('HDEL', key, 'a')
  redis.call('ZADD', key, 1, 'a')
  redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  redis.call('ZRANGEBYSCORE', key, 0, 0)
  redis.call('ZCOUNT', key, 0, 0)
  redis.call('ZSCORE', key, 'a')
  redis.call('ZRANK', key, 'a')
  redis.call('ZCARD', key)
  redis.call('ZREM', key, 'a')
end
redis.call('PUBLISH', ARGV[1], '')
return string.format('%.0f', time[1] * 1000000 + time[2])
