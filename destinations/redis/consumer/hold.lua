-- Says of some entries that they are still being handled: their idle time begins anew.
--
-- KEYS[1]  the stream
-- ARGV     the group, the consumer, again to count a delivery or keep, and then the ids
-- answers  for each id how often it was delivered, or -1 if it is another's by now or done
local group, consumer = ARGV[1], ARGV[2]
local options = {}
if ARGV[3] == 'keep' then
    options[1] = 'JUSTID'
end
local answers = {}
for i = 4, #ARGV do
    local id = ARGV[i]
    local pending = redis.call('XPENDING', KEYS[1], group, id, id, 1)[1]
    local answer = -1
    if pending and pending[2] == consumer then
        redis.call('XCLAIM', KEYS[1], group, consumer, 0, id, unpack(options))
        answer = pending[4] + 1 - #options
    elseif not pending and #redis.call('XRANGE', KEYS[1], id, id) == 0 then
        answer = 0 -- the stream was trimmed: only we have it, and nobody counts
    end
    answers[#answers + 1] = answer
end
return answers
