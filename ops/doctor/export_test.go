package doctor

import "time"

// WithClock examines by another clock of the client.
func (config Config) WithClock(now func() time.Time) Config {
	config.now = now
	return config
}

// JudgeVersion is judgeVersion.
var JudgeVersion = judgeVersion
