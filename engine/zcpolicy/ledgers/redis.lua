-- One step of a ledger, atomic. It keeps, below the prefix KEYS[1] (whose hash tag puts all into one slot of a cluster):
--   :meta      the latest time that was acted on, the number of the last change, the epoch, the edition. An epoch is BIRTH.TOKEN:
--              of the ledger, for good, and of the last time that something was forgotten
--   :records   by number of reservation: JSON. All numbers in it are texts, since Lua's have 53 bits
--   :keys      by key: the number of its latest reservation
--   :tag:TAG   reservations that have the tag, scored by their last change
--   :raised    by tag: the last change by which something that has it counts more than before
--   :yes:…     yeses of one binding, by the change that made them; :bindings, which there are
-- Times and changes are microseconds. ARGV[1]: what to do, JSON. Out: {what came of it, time, last change, epoch, …}
if redis.replicate_commands then redis.replicate_commands() end

local prefix, ask = KEYS[1], cjson.decode(ARGV[1])
local meta = redis.call('HMGET', prefix .. ':meta', 'latest', 'change', 'epoch', 'edition')
local latest, last, epoch, edition = tonumber(meta[1] or '0'), tonumber(meta[2] or '0'), meta[3], meta[4]
if edition and edition ~= ask.edition then return { 'edition' } end

local function birth(of) return string.match(of, '^[^.]*') end
-- The asker saw another ledger here, or more of this one.
if ask.epoch ~= '' and (birth(ask.epoch) ~= birth(epoch or '') or last < tonumber(ask.seen)) then return { 'lost' } end

local now
if ask.now then
  now = tonumber(ask.now)
else
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
now = math.max(now, latest, tonumber(ask.floor)) -- what the asker saw before was a time as well

local function text(number) return string.format('%.0f', number) end

local function answer(what, ...) return { what, text(now), text(last), epoch or '', ... } end

local function tick()
  last = math.max(last + 1, now)
  epoch = epoch or ask.token .. '.' .. ask.token
  redis.call('HSET', prefix .. ':meta', 'latest', text(now), 'change', text(last), 'epoch', epoch, 'edition', ask.edition)
  return text(last)
end

local function record(number)
  local found = number and redis.call('HGET', prefix .. ':records', number)
  return found and cjson.decode(found), found or ''
end

local function put(number, one, raised)
  one.h = tick()
  redis.call('HSET', prefix .. ':records', number, cjson.encode(one))
  for _, tag in ipairs(one.t) do
    redis.call('ZADD', prefix .. ':tag:' .. tag, one.h, number)
    if raised then redis.call('HSET', prefix .. ':raised', tag, one.h) end
  end
end

-- What changed for each of the pots that were asked about.
local function news()
  local found = {}
  for _, pot in ipairs(ask.pots) do
    local numbers = redis.call('ZRANGEBYSCORE', prefix .. ':tag:' .. pot[1], '(' .. pot[2], '+inf', 'LIMIT', 0, ask.page)
    local records = #numbers > 0 and redis.call('HMGET', prefix .. ':records', unpack(numbers)) or {}
    for place, number in ipairs(numbers) do records[place] = { number, records[place] } end
    found[#found + 1] = records
  end
  return found
end

local function stands(one)
  return one.s == 'dispatched' or one.s == 'settled' or (one.s == 'reserved' and now < tonumber(one.u))
end

local steps = {}

function steps.read()
  local number = ask.key and redis.call('HGET', prefix .. ':keys', ask.key)
  local _, found = record(number)
  return answer('read', number or '', found, news())
end

function steps.reserve()
  local number = redis.call('HGET', prefix .. ':keys', ask.key)
  local known, found = record(number)
  if known and stands(known) then
    return answer(known.n == ask.token and 'made' or 'stands', number, found, news())
  end
  if (epoch or '') ~= ask.epoch then return answer('moved', '', '', news()) end
  for _, pot in ipairs(ask.pots) do
    local raised = redis.call('HGET', prefix .. ':raised', pot[1])
    if raised and tonumber(raised) > tonumber(pot[2]) then return answer('moved', '', '', news()) end
  end
  local one = {
    k = ask.key, a = text(now), u = text(now + tonumber(ask.lease)), s = 'reserved',
    w = ask.spender, c = ask.charges, t = ask.tags, n = ask.token,
  }
  number = text(math.max(last + 1, now))
  put(number, one, true)
  redis.call('HSET', prefix .. ':keys', ask.key, number)
  return answer('made', number, cjson.encode(one), news())
end

function steps.change()
  local one, found = record(ask.number)
  if not one then return answer('gone', '', '', {}) end
  local latest_of_key = redis.call('HGET', prefix .. ':keys', one.k)
  if latest_of_key ~= ask.number then -- the key was made anew since the asker read it
    local _, newer = record(latest_of_key)
    return answer('moved', latest_of_key, newer, {})
  end
  if one.n ~= ask.token then -- else it was done, and the answer lost
    if one.h ~= ask.change or (ask.live and now >= tonumber(one.u)) then
      return answer('moved', ask.number, found, {})
    end
    one.s, one.c, one.n = ask.state, ask.charges, ask.token
    if ask.lease then one.u = text(math.max(tonumber(one.u), now + tonumber(ask.lease))) end
    put(ask.number, one, ask.raised)
  end
  return answer('done', ask.number, cjson.encode(one), {})
end

function steps.forget()
  local before = tonumber(ask.before)
  for _, number in ipairs(ask.numbers) do
    local one = record(number)
    if one and tonumber(one.a) < before
      and (one.s == 'settled' or one.s == 'released' or tonumber(one.u) <= now) then
      redis.call('HDEL', prefix .. ':records', number)
      if redis.call('HGET', prefix .. ':keys', one.k) == number then redis.call('HDEL', prefix .. ':keys', one.k) end
      for _, tag in ipairs(one.t) do
        redis.call('ZREM', prefix .. ':tag:' .. tag, number)
        if redis.call('EXISTS', prefix .. ':tag:' .. tag) == 0 then redis.call('HDEL', prefix .. ':raised', tag) end
      end
    end
  end
  epoch = birth(epoch or ask.token) .. '.' .. ask.token
  tick()
  return answer('done')
end

function steps.approve()
  local place = prefix .. ':yes:' .. ask.binding
  for _, yes in ipairs(redis.call('HVALS', place)) do -- it may be here already, and the answer lost
    if cjson.decode(yes)[6] == ask.token then return answer('done') end
  end
  redis.call('SADD', prefix .. ':bindings', ask.binding)
  redis.call('HSET', place, tick(), ask.yes)
  return answer('done')
end

function steps.yeses()
  tick() -- a yes that ran out stays so
  return answer('read', redis.call('HGETALL', prefix .. ':yes:' .. ask.binding))
end

-- Puts a yes in the place of another one; none if it is not what it was.
function steps.take()
  local place = prefix .. ':yes:' .. ask.binding
  if redis.call('HGET', place, ask.number) ~= ask.old then return answer('moved') end
  if ask.new then redis.call('HSET', place, ask.number, ask.new) else redis.call('HDEL', place, ask.number) end
  if redis.call('EXISTS', place) == 0 then redis.call('SREM', prefix .. ':bindings', ask.binding) end
  return answer('done')
end

function steps.revoke()
  local all = ask.binding and { ask.binding } or redis.call('SMEMBERS', prefix .. ':bindings')
  for _, binding in ipairs(all) do
    redis.call('DEL', prefix .. ':yes:' .. binding)
    redis.call('SREM', prefix .. ':bindings', binding)
  end
  return answer('done')
end

return steps[ask.what]()
