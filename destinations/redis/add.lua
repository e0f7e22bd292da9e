-- Adds messages to one stream, in order. After one that failed, the later ones of its key are
-- left alone. It answers with a word per message: added, missing (there is no such stream),
-- skipped, or the error.
--
-- KEYS[1]  the stream
-- ARGV     the id to give, 1 to create the stream or 0, the length to trim to or 0, and then for
--          each message the number of its key (0 has no order), how many strings its fields are,
--          and those
local answers, failed = {}, {}
local options = {}
if ARGV[2] == '0' then
    options[#options + 1] = 'NOMKSTREAM'
end
if ARGV[3] ~= '0' then
    options[#options + 1] = 'MAXLEN'
    options[#options + 1] = '~'
    options[#options + 1] = ARGV[3]
end
options[#options + 1] = ARGV[1]

local function add(from, to)
    local command = {'XADD', KEYS[1], unpack(options)}
    for i = from, to do
        command[#command + 1] = ARGV[i]
    end
    return redis.pcall(unpack(command))
end

local at = 4
while at <= #ARGV do
    local key, from, to = ARGV[at], at + 2, at + 1 + tonumber(ARGV[at + 1])
    local answer = 'skipped'
    if not failed[key] then
        local reply = add(from, to)
        if not reply then
            answer = 'missing'
        elseif type(reply) == 'table' and reply.err then
            answer = reply.err
        else
            answer = 'added'
        end
        if answer ~= 'added' and key ~= '0' then
            failed[key] = true
        end
    end
    answers[#answers + 1] = answer
    at = to + 1
end

-- 0-0 asks whether an entry would be taken. It is refused before anybody looks at the stream.
if ARGV[1] == '0-0' and string.find(answers[1], 'greater than 0-0', 1, true) then
    local kind = redis.pcall('TYPE', KEYS[1]).ok -- nothing if we may not ask
    if kind == 'none' and ARGV[2] == '0' then
        return {'missing'}
    elseif kind and kind ~= 'none' and kind ~= 'stream' then
        return {'WRONGTYPE Operation against a key holding a ' .. kind}
    end
end
return answers
