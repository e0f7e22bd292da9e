-- Gives an entry back to the group: it counts as idle for so long that the next one who looks
-- takes it.
--
-- KEYS[1]  the stream
-- ARGV     the group, the consumer, the consumer in whose name it waits, the idle time in
--          milliseconds, the id, and how often it counts as delivered
local group, consumer, heir, idle, id, count = unpack(ARGV)
local pending = redis.call('XPENDING', KEYS[1], group, id, id, 1)[1]
if pending and pending[2] == consumer then
    redis.call('XCLAIM', KEYS[1], group, heir, 0, id, 'IDLE', idle, 'RETRYCOUNT', count, 'JUSTID')
end
return 1
