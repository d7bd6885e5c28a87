-- Claims, releases and single renewals in one call.
--
-- scripts.rs puts wait_queue.lua, claim.lua and release.lua before this text. Items are independent
-- of each other. Each gets the reply that it would get alone, in this order.
--
-- KEYS  the locks of all, the grants of all, and so on with the five of wait_queue.lua
-- ARGV  of each: 'claim', 'release' or 'renew' and the arguments of that function, packed. Trailing
--       arguments with their usual value are omitted.
--       Then, during a reassert grace: its rest in ms for any lock, and for a lock whose floor shows
--       an earlier grant
-- Returns the reply of each. After an error the rest has no replies: the caller sends each of those
--       again, alone.
local count = #KEYS / 5
if count < #ARGV then
  any_grace, earlier_grace = tonumber(ARGV[count + 1]), tonumber(ARGV[count + 2])
end
-- One query replaces the query of each queue.
has_no_waiter = 1 < count and call('EXISTS', unpack(KEYS, 2 * count + 1, 3 * count)) == 0

-- Renews the lease if that value still holds the lock. Returns 1 or 0.
local function renew(value, ttl)
  return redis.pcall('GET', lock) == value and call('PEXPIRE', lock, ttl) or 0
end

-- The key of the lock whose type no script made, as the end of an error's text.
local function foreign()
  local types = {[lock] = 'string', [grant] = 'hash', [line] = 'zset', [due] = 'zset', [waiting] = 'hash'}
  for key, wanted in pairs(types) do
    local is = call('TYPE', key).ok
    if is ~= 'none' and is ~= wanted then
      return ': another program made the ' .. is .. ' ' .. key .. ': delete it'
    end
  end
  return ''
end

local functions, replies = {claim = claim, release = release, renew = renew}, {}
local function run(what, ...) return pcall(functions[what], ...) end

for i = 1, count do
  lock, grant, line = KEYS[i], KEYS[count + i], KEYS[2 * count + i]
  due, waiting = KEYS[3 * count + i], KEYS[4 * count + i]
  local is_well, reply = run(cmsgpack.unpack(ARGV[i]))
  if not is_well then
    -- A text in some versions, a table in others.
    local text = type(reply) == 'table' and reply.err or reply
    return 1 < i and replies or {err = text .. foreign()}
  end
  replies[i] = reply
end
return replies
