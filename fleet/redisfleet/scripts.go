package redisfleet

import "github.com/redis/go-redis/v9"

// prelude begins the scripts. The keys of a set, which all have its hash tag:
//
//	PREFIX:{SET}:r:KEY      REVISION:NONCE:GROUP:DATA, with the nonce of the last change
//	PREFIX:{SET}:expires    sorted set of GROUP:KEY by expiry, in milliseconds
//	PREFIX:{SET}:due        sorted set of GROUP:KEY by the time when it is due, in microseconds
//	PREFIX:{SET}:groups     sorted set of GROUP:KEY, all with the score 0, for those with a group
//
// The keys of a group of logs:
//
//	PREFIX:{GROUP}:l:LOG    stream of a log: the ID SEQ-0, d data, b bytes of all entries before
//	PREFIX:{GROUP}:logs     sorted set of the names of logs by expiry, in milliseconds
//
// A record and a log expire by themselves. What indexes have of them is removed when it is met, and
// by sweep. An index expires with the last of its members.
//
// The revision of a record is the time of its last change in microseconds, or one more than before.
// Times fit into the numbers of Lua, which have 53 bits. Numbers of entries do not, so scripts
// compare them as text.
const prelude = `
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local function text(number) return string.format('%.0f', number) end
local ms = math.floor(now / 1000)

-- head returns revision, nonce and group of a record, and where its data begins. The text is the
-- record or its beginning; "" if there is none.
local function head(text) return string.match(text, '^(%d+):(%w*):([%w_-]*):()') end
local function peek(key) return head(redis.call('GETRANGE', key, 0, 127)) end

-- extend lets an index live for as long as its members.
local function extend(key, ttl)
	if redis.call('PTTL', key) < ttl + 5000 then redis.call('PEXPIRE', key, ttl + 5000) end
end
`

// recordPrelude is for scripts whose keys end with the three indexes.
const recordPrelude = prelude + `
local expires, due, groups = KEYS[#KEYS - 2], KEYS[#KEYS - 1], KEYS[#KEYS]

-- sweep removes what has expired from the indexes, up to a number of members. A second passes
-- before, since the clock of expiry may be a little behind.
local function sweep(limit)
	local gone = redis.call('ZRANGEBYSCORE', expires, '-inf', '(' .. text(ms - 1000), 'LIMIT', 0, limit)
	if #gone > 0 then
		redis.call('ZREM', expires, unpack(gone))
		redis.call('ZREM', due, unpack(gone))
		redis.call('ZREM', groups, unpack(gone))
	end
	return #gone
end

-- store writes a record.
local function store(group, revision)
	local key, ttl, at = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
	local member = group .. ':' .. key
	redis.call('SET', KEYS[1], table.concat({revision, ARGV[6], group, ARGV[2]}, ':'), 'PX', ttl)
	redis.call('ZADD', expires, text(ms + ttl), member)
	extend(expires, ttl)
	if at < 0 then
		redis.call('ZREM', due, member)
	else
		redis.call('ZADD', due, text(now + at), member)
	end
	extend(due, ttl)
	if group ~= '' then
		redis.call('ZADD', groups, 0, member)
		extend(groups, ttl)
	end
	return revision
end
`

// listPrelude is for scripts that return records: their first argument is what record keys begin
// with.
const listPrelude = recordPrelude + `
-- collect returns the records of an index, which members reads from a position on. It removes
-- members without a record.
local function collect(index, members)
	local all, dead, limit, position = {}, {}, tonumber(ARGV[2]), 0
	while #all < limit do
		local some = members(position, limit - #all)
		if #some == 0 then break end
		position = position + #some
		for _, member in ipairs(some) do
			local colon = string.find(member, ':', 1, true)
			local group, key = string.sub(member, 1, colon - 1), string.sub(member, colon + 1)
			local at = ARGV[1] .. key
			local record = redis.call('GET', at)
			local revision, _, of, data = head(record or '')
			if of == group then
				all[#all + 1] = {key, string.sub(record, data), revision, group, redis.call('PTTL', at)}
			else
				dead[#dead + 1] = member
			end
		end
	end
	for _, member in ipairs(dead) do redis.call('ZREM', index, member) end
	return all
end
sweep(1000)
`

var (
	// KEYS: the record. ARGV: its key.
	getScript = redis.NewScript(prelude + `
local record = redis.call('GET', KEYS[1])
local revision, _, group, data = head(record or '')
if not revision then return {} end
return {{ARGV[1], string.sub(record, data), revision, group, redis.call('PTTL', KEYS[1])}}
`)

	// KEYS: the record, indexes. ARGV: key, data, TTL, due, group, nonce.
	createScript = redis.NewScript(recordPrelude + `
local old, nonce = peek(KEYS[1])
if old then return nonce == ARGV[6] and old or '-2' end
sweep(16)
return store(ARGV[5], text(now))
`)

	// KEYS: the record, indexes. ARGV: key, data, TTL, due, revision, nonce.
	updateScript = redis.NewScript(recordPrelude + `
local old, nonce, group = peek(KEYS[1])
if not old then return '-1' end
if old ~= ARGV[5] then return nonce == ARGV[6] and old or '-2' end
return store(group, text(math.max(now, old + 1)))
`)

	// KEYS: the record, indexes. ARGV: key, revision.
	deleteScript = redis.NewScript(recordPrelude + `
local old, _, group = peek(KEYS[1])
if not old then return '0' end
if ARGV[2] ~= '0' and ARGV[2] ~= old then return '-2' end
local member = group .. ':' .. ARGV[1]
redis.call('UNLINK', KEYS[1])
redis.call('ZREM', expires, member)
redis.call('ZREM', due, member)
redis.call('ZREM', groups, member)
return '0'
`)

	// KEYS: indexes. ARGV: beginning of record keys, limit, time from now in microseconds.
	dueScript = redis.NewScript(listPrelude + `
return collect(due, function(position, limit)
	return redis.call('ZRANGEBYSCORE', due, '-inf', text(now + ARGV[3]), 'LIMIT', position, limit)
end)
`)

	// KEYS: indexes. ARGV: beginning of record keys, limit, group, after.
	listScript = redis.NewScript(listPrelude + `
local first, last = '(' .. ARGV[3] .. ':' .. ARGV[4], '(' .. ARGV[3] .. ';'
return collect(groups, function(position, limit)
	return redis.call('ZRANGEBYLEX', groups, first, last, 'LIMIT', position, limit)
end)
`)

	// KEYS: indexes. ARGV: beginning of record keys, group.
	countScript = redis.NewScript(recordPrelude + `
if ARGV[2] == '' then return redis.call('ZCOUNT', expires, text(ms), '+inf') end
repeat local n = sweep(1000) until n < 1000
return redis.call('ZLEXCOUNT', groups, '[' .. ARGV[2] .. ':', '(' .. ARGV[2] .. ';')
`)

	// KEYS: the log, the names. ARGV: name, number, data, entries, bytes, TTL.
	appendScript = redis.NewScript(prelude + `
local id, before, ttl = ARGV[2] .. '-0', 0, tonumber(ARGV[6])
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if newest then
	local last = string.sub(newest[1], 1, -3)
	if #ARGV[2] < #last or #ARGV[2] == #last and ARGV[2] <= last then
		local same = redis.call('XRANGE', KEYS[1], id, id)[1]
		return same and same[2][4] == ARGV[3] and '0' or '-2'
	end
	before = newest[2][2] + #newest[2][4]
end
redis.call('XADD', KEYS[1], id, 'b', text(before), 'd', ARGV[3])
redis.call('XTRIM', KEYS[1], 'MAXLEN', '=', ARGV[4])
while true do
	local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
	if oldest[1] == id or before + #ARGV[3] - oldest[2][2] <= tonumber(ARGV[5]) then break end
	redis.call('XDEL', KEYS[1], oldest[1])
end
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('ZADD', KEYS[2], text(ms + ttl), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. text(ms - 1000))
extend(KEYS[2], ttl)
return '0'
`)

	// KEYS: the log. ARGV: number, limit.
	afterScript = redis.NewScript(`
local all = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], ARGV[1] .. '-1', '+', 'COUNT', ARGV[2])) do
	all[#all + 1] = entry[1]
	all[#all + 1] = entry[2][4]
end
return all
`)

	// KEYS: the names. ARGV: beginning of the keys of logs, limit.
	dropScript = redis.NewScript(`
local names = redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1)
for _, name in ipairs(names) do
	redis.call('UNLINK', ARGV[1] .. name)
	redis.call('ZREM', KEYS[1], name)
end
return #names
`)
)
