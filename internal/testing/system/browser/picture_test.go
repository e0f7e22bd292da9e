package browsertest_test

import (
	"math"
	"os"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// picture runs a shop through a busy time, with an outage and some declined payments, and takes
// the picture of the README. Where pictures are kept it takes the time to fill the charts.
func picture(b *tab, s *shop) {
	length := 3 * time.Second
	if os.Getenv(screenshotsVariable) != "" {
		length = 100 * time.Second
	}
	b.open("/")
	begin := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	number := 0
	for past := time.Duration(0); past < length; past = time.Since(begin) {
		<-tick.C
		part := float64(past) / float64(length)
		s.broker.SetDown(part > 0.45 && part < 0.55 || part > 0.95)
		s.declines.Store(number%40 == 17)
		for range 2 + int(3*math.Abs(math.Sin(9*part))) {
			number++
			events := []outbox.Event{order("order.placed", number), order("payment.captured", number)}
			if number%3 > 0 {
				events = append(events, order("parcel.shipped", number))
			}
			for i, topic := range []string{"orders", "payments", "parcels"}[:len(events)] {
				events[i].Topic = topic
			}
			s.emit(events...)
		}
	}
	// As autovacuum would: the number of delivered events is the planner's.
	pgtest.Exec(b.t, s.pool, `ANALYZE`)
	b.see("Events by state")
	b.until(`document.querySelectorAll('.chart .line').length === 4`)
	b.picture("console")
}
