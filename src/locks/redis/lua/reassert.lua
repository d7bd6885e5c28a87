-- Puts locks back whose renewal found them gone or somebody else's, although their holder lives: Redis
-- came back empty or with an older state, or the holder was late and nobody was waiting.
--
-- Only if nobody got the lock after this holder, which the grant tells:
--
--   * it is gone: then so is all that anybody could have been given;
--   * it is still this holder's;
--   * its fence is lower than this holder's. Fences of a lock rise (K2), and the database ratified this
--     holder's fence before its first renewal. So each grant with a lower fence is older, and Redis
--     restored it: from an RDB or AOF file, or as a replica that had not received the later grant. Each
--     newer grant has a higher fence: it was minted above the floor that the database ratified, or the
--     database refuses it.
--
-- By the last rule this script also takes the key from the holder of an older grant. The comparison uses
-- fences alone, and no clock. A released lock stays released. A key that was set by hand has no grant of
-- its own value: it is lost to its holder alone, and an error would spoil the round for all others in
-- the call.
--
-- KEYS  the lock, its grant and its line of each: the five keys of wait_queue.lua
-- ARGV  1 ttl in ms   2 for how many ms a grant is remembered
--       3… of each: value, fence, since, owner
-- Gives a string with one byte for each: '1' held after all, '2' put back, '0' lost
local ttl, kept, verdicts = ARGV[1], ARGV[2], {}
for i = 1, #KEYS / 5 do
  local at = 4 * i - 1
  local lock, grant, line = KEYS[5 * i - 4], KEYS[5 * i - 3], KEYS[5 * i - 2]
  local value, fence = ARGV[at], ARGV[at + 1]
  local mine = tonumber(fence)
  local held = redis.pcall('GET', lock)
  local last = redis.pcall('HMGET', grant, 'value', 'fence', 'released')
  local is_older = not last.err and (not last[2] or (tonumber(last[2]) or mine) < mine)
  local is_mine = not last.err and last[1] == value and last[2] == fence
  -- What is held was given by the grant that is compared.
  local is_told = not held or (last[2] and held == last[1])
  if held == value then
    redis.call('PEXPIRE', lock, ttl)
    verdicts[i] = '1'
  elseif last[3] == value or not (is_older or is_mine) or not is_told then
    verdicts[i] = '0'
  else
    redis.call('SET', lock, value, 'PX', ttl)
    redis.call('HSET', grant, 'value', value, 'fence', fence, 'since', ARGV[at + 2],
      'owner', ARGV[at + 3])
    redis.call('PEXPIRE', grant, kept)
    -- An older state may show the holder in the line, where it waited for this grant.
    if last[2] and redis.pcall('ZREM', line, value) == 1 then
      redis.pcall('ZREM', KEYS[5 * i - 1], value)
      redis.pcall('HDEL', KEYS[5 * i], value)
    end
    verdicts[i] = '2'
  end
end
return table.concat(verdicts)
