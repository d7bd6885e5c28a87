-- Reasserts locks whose renewal found them gone or under another value although their holder lives:
-- Redis restarted empty or with an older state, or the holder was late and no claimant waited.
--
-- The script reasserts a lock only if no later grant exists. The grant proves that in three cases:
--
--   * The grant is gone: then so is each later one.
--   * The grant is still this holder's.
--   * Its fence is lower than this holder's. Fences of a lock rise (K2), and the database ratified this
--     holder's fence before its first renewal. So each grant with a lower fence is older, and Redis
--     restored it: from an RDB or AOF file, or as a replica that had not received the later grant. Each
--     newer grant has a higher fence: it was minted above the floor that the database ratified, or the
--     database refuses it.
--
-- By the last case the script also takes the key from the holder of an older grant. It compares
-- fences alone, and no clock. A released lock stays released. A key that an operator set by hand
-- has no grant of its own value: its holder alone loses it. An error would spoil the round for all
-- other locks in the call.
--
-- KEYS  of each: the five keys of wait_queue.lua
-- ARGV  1 ttl in ms   2 for how many ms a grant is stored
--       3… of each: value, fence, since, owner
-- Returns a string with one byte for each: '1' held after all, '2' reasserted, '0' lost
local ttl, grant_ttl, verdicts = ARGV[1], ARGV[2], {}
for i = 1, #KEYS / 5 do
  local at = 4 * i - 1
  local lock, grant, line = KEYS[5 * i - 4], KEYS[5 * i - 3], KEYS[5 * i - 2]
  local value, fence = ARGV[at], ARGV[at + 1]
  local mine = tonumber(fence)
  local held = redis.pcall('GET', lock)
  local last = redis.pcall('HMGET', grant, 'value', 'fence', 'released')
  local is_older = not last.err and (not last[2] or (tonumber(last[2]) or mine) < mine)
  local is_mine = not last.err and last[1] == value and last[2] == fence
  -- The stored grant is that of the held value.
  local has_its_grant = not held or (last[2] and held == last[1])
  if held == value then
    redis.call('PEXPIRE', lock, ttl)
    verdicts[i] = '1'
  elseif last[3] == value or not (is_older or is_mine) or not has_its_grant then
    verdicts[i] = '0'
  else
    redis.call('SET', lock, value, 'PX', ttl)
    redis.call('HSET', grant, 'value', value, 'fence', fence, 'since', ARGV[at + 2],
      'owner', ARGV[at + 3])
    redis.call('PEXPIRE', grant, grant_ttl)
    -- In an older state the holder may still be a waiter for this grant.
    if last[2] and redis.pcall('ZREM', line, value) == 1 then
      redis.pcall('ZREM', KEYS[5 * i - 1], value)
      redis.pcall('HDEL', KEYS[5 * i], value)
    end
    verdicts[i] = '2'
  end
end
return table.concat(verdicts)
