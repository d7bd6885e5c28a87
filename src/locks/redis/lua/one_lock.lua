-- A claim, a release or a single renewal.
--
-- scripts.rs puts wait_queue.lua, claim.lua and release.lua before this text.
--
-- KEYS  the five of wait_queue.lua
-- ARGV  'claim', 'release' or 'renew' and the arguments of that function, packed. Trailing arguments with
--       their usual value are omitted.
--       Then, during a reassert grace: its rest in ms for any lock, and for a lock whose floor shows
--       an earlier grant
lock, grant, line, due, waiting = unpack(KEYS)
any_grace, earlier_grace = tonumber(ARGV[2]) or 0, tonumber(ARGV[3]) or 0

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

local functions = {claim = claim, release = release, renew = renew}
local function run(what, ...) return pcall(functions[what], ...) end
local is_well, reply = run(cmsgpack.unpack(ARGV[1]))
if not is_well then
  -- A text in some versions, a table in others.
  return {err = (type(reply) == 'table' and reply.err or reply) .. foreign()}
end
return reply
