package redis

import (
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// WaitForAnswers has calls wait for as long as a test may, unless their contexts end before.
func (p *Publisher) WaitForAnswers() {
	options := p.client.(*goredis.Client).Options()
	options.ReadTimeout, options.WriteTimeout = time.Hour, time.Hour
}
