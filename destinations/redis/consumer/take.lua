-- Takes entries that a group has delivered before and nobody has acknowledged, the oldest first, as
-- XAUTOCLAIM does. Unlike it, it tells how often each was delivered, and leaves some out.
--
-- KEYS[1]  the stream
-- ARGV     the group, the consumer, 1 for its own entries only or 0, how long they must have been
--          idle in milliseconds, how many at most, and then the ids to leave out
-- answers  for each entry the id, how often it was delivered, and its fields or false where the
--          stream has lost it; and at the end 1 if there may be more or 0
local group, consumer, own, idle, limit = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4], tonumber(ARGV[5])
local out = {}
for i = 6, #ARGV do
    out[ARGV[i]] = true
end
local count = limit + #ARGV - 5
local query = {'XPENDING', KEYS[1], group, 'IDLE', idle, '-', '+', count}
if own then
    query[#query + 1] = consumer
end
local answers, pending, taken = {}, redis.call(unpack(query)), 0
for _, entry in ipairs(pending) do
    if taken == limit then
        break
    end
    if not out[entry[1]] then
        local claimed = redis.call('XCLAIM', KEYS[1], group, consumer, idle, entry[1])
        local fields = claimed[1] and claimed[1][2] or false
        if not fields then
            redis.call('XACK', KEYS[1], group, entry[1])
        end
        answers[#answers + 1] = {entry[1], entry[4] + 1, fields}
        taken = taken + 1
    end
end
answers[#answers + 1] = #pending == count and 1 or 0
return answers
