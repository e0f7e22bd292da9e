package browsertest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/packfinderz/outbox/admin"
)

// TestConsole drives the console as the person on call would. The tests share a browser, each in
// a window of its own.
func TestConsole(t *testing.T) {
	t.Parallel()
	browser := startChromium(t)
	for _, test := range []struct {
		name   string
		access admin.Access
		run    func(*tab, *shop)
	}{
		{"numbers move", admin.Access{}, numbersMove},
		{"retry a dead event", admin.Access{}, retryDead},
		{"replay", admin.Access{}, replay},
		{"a viewer", admin.Access{Credentials: vera(t), MaskPayloads: true}, viewer},
		{"hostile strings", admin.Access{}, hostile},
		{"keys and phones", admin.Access{}, keys},
		{"a picture", admin.Access{}, picture},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, test.access)
			test.run(newTab(t, browser, s.url), s)
		})
	}
}

// numbersMove watches the overview while events flow.
func numbersMove(b *tab, s *shop) {
	b.open("/")
	b.see("Overview", "Everything is delivered.")
	moved := `document.querySelector('[data-number=delivered]').innerText !== ` +
		quoted(evaluate[string](b, `document.querySelector('[data-number=delivered]').innerText`))
	for number := 1; !evaluate[bool](b, moved); number++ {
		s.emit(order("order.placed", number))
		s.received("order.placed", number)
	}
	if evaluate[int](b, `document.querySelectorAll('.chart .line').length`) == 0 {
		b.t.Error("no chart is drawn")
	}
	b.picture("overview")
}

// retryDead finds a dead event, reads its error, retries it and sees it delivered.
func retryDead(b *tab, s *shop) {
	s.declines.Store(true)
	for i := range 3 {
		s.emit(order("order.placed", i), order("payment.captured", i))
	}
	b.open("/")
	b.see("3 events are dead")
	b.picture("overview-dead")
	b.click("Dead letters")
	b.see("payment.captured", "the acquirer declined payment of", "insufficient funds")
	b.picture("dead")
	b.click("Look at them")
	b.see("order-1")
	b.picture("events")
	b.do(chromedp.Click(`//tr[contains(., "order-1")]//a[contains(@class, "open")]`, chromedp.BySearch))
	b.see("Why it is dead", "the acquirer declined payment of order-1: 402 insufficient funds", `"currency": "EUR"`)
	b.picture("event")
	s.declines.Store(false)
	b.click("Retry")
	b.see("1 event retried.")
	s.received("payment.captured", 1)
	b.until(`fetch(location.pathname).then(r => r.text()).then(text => text.includes('state delivered'))`)
	b.do(chromedp.Reload())
	b.see("delivered")
	b.picture("event-retried")
	// The others by their group, after a look at what that would be.
	b.click("Dead letters")
	b.click("Retry…")
	b.see("2 dead events would be retried")
	b.picture("retry")
	b.click("Retry 2")
	b.see("2 events retried.")
	s.received("payment.captured", 3)
	b.click("Audit log")
	b.see("retry", "console", "done")
	b.picture("audit")
	b.click("Relays")
	b.see("Shards of default")
	b.picture("relays")
	b.click("Doctor")
	b.see("PostgreSQL")
	b.picture("doctor")
}

// replay publishes delivered events again, after a preview.
func replay(b *tab, s *shop) {
	for i := range 5 {
		s.emit(order("order.placed", i), order("order.shipped", i))
	}
	s.received("order.placed", 5)
	s.received("order.shipped", 5)
	s.settled()
	b.open("/t/shop/replay")
	b.picture("replay-empty")
	b.fill("type", "order.shipped")
	b.click("Preview")
	b.see("5 events would be published again")
	b.picture("replay")
	if n := len(s.broker.Received()); n != 10 {
		b.t.Errorf("a preview published: %d messages", n)
	}
	b.click("Replay 5")
	b.see("5 events replayed.")
	s.received("order.shipped", 10)
	s.received("order.placed", 5)
}

// keys moves around without a mouse.
func keys(b *tab, s *shop) {
	for i := range 3 {
		s.emit(order("order.placed", i))
	}
	s.received("order.placed", 3)
	press := func(keys string) {
		b.t.Helper()
		b.do(chromedp.KeyEvent(keys))
	}
	b.open("/")
	press("?")
	b.until(`document.getElementById('keys').open`)
	b.picture("keys")
	b.click("Close")
	b.until(`!document.getElementById('keys').open`)
	// The second key has to follow soon, which a busy machine may not manage.
	for !evaluate[bool](b, `location.pathname.endsWith('/events')`) {
		press("g")
		press("e")
	}
	b.until(`document.querySelectorAll('[data-item]').length === 3`)
	// The page that was left, or one that is not ready, may have taken a key: to the top, and one down.
	for !evaluate[bool](b, `document.querySelectorAll('[data-item]')[1].classList.contains('at')`) {
		press("kkk")
		press("j")
	}
	press("/") // which a driver types, too
	b.until(`document.activeElement.name === 'q'`)
	evaluate[string](b, `document.activeElement.value = ''`)
	press("order-2\r")
	b.see("found as key")
	if n := evaluate[int](b, `document.querySelectorAll('[data-item]').length`); n != 1 {
		b.t.Errorf("the search finds %d events", n)
	}
	press("t")
	b.until(`document.documentElement.dataset.theme`)
	dark := evaluate[string](b, `document.documentElement.dataset.theme`)
	b.picture("events-" + dark)
	b.open("/t/shop/events")
	if again := evaluate[string](b, `document.documentElement.dataset.theme`); again != dark || dark == "" {
		b.t.Errorf("the theme was %q and is %q on the next page", dark, again)
	}
	b.do(chromedp.EmulateViewport(390, 844))
	b.open("/")
	b.picture("phone-overview")
	b.open("/t/shop/events")
	b.picture("phone-events")
	if wide := evaluate[bool](b, `document.documentElement.scrollWidth > innerWidth`); wide {
		b.t.Error("the page is wider than a phone")
	}
}

const verasPassword = "look but do not touch"

// vera is a viewer.
func vera(t *testing.T) admin.Credentials {
	t.Helper()
	line, err := admin.NewUser("vera", admin.Viewer, verasPassword)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := admin.ParseCredentials(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	return credentials
}

// viewer logs in and finds nothing to press; what is sent all the same is refused.
func viewer(b *tab, s *shop) {
	s.declines.Store(true)
	event := order("payment.captured", 7)
	event.ID = uuid.Must(uuid.NewV7())
	s.emit(event)
	b.open("/t/shop/events/" + event.ID.String())
	b.picture("login")
	b.fill("name", "vera")
	b.fill("password", verasPassword)
	b.click("Log in")
	b.see(event.ID.String())
	b.until(`fetch(location.pathname).then(r => r.text()).then(text => text.includes('state dead'))`)
	b.do(chromedp.Reload())
	b.see("Why it is dead", "Payloads are hidden from viewers.")
	b.picture("event-viewer")
	for _, path := range []string{"/t/shop/events/" + event.ID.String(), "/t/shop/events?state=dead", "/t/shop/dead"} {
		b.open(path)
		if words := b.text("main"); strings.Contains(words, "Retry") || strings.Contains(words, "EUR") {
			b.t.Errorf("%s shows a viewer: %s", path, words)
		}
	}
	post := func(form url.Values) int {
		return evaluate[int](b, `fetch('/t/shop/retry', {method: 'POST', body: new URLSearchParams(`+quoted(form.Encode())+`)}).then(r => r.status)`)
	}
	token := evaluate[string](b, `document.querySelector('[name=csrf]').value`)
	if status := post(url.Values{"id": {event.ID.String()}, "csrf": {token}}); status != http.StatusForbidden {
		b.t.Errorf("a viewer's retry is answered with %d", status)
	}
	if status := post(url.Values{"id": {event.ID.String()}}); status != http.StatusForbidden {
		b.t.Errorf("a retry without a token is answered with %d", status)
	}
	// A link in a chat leads here without logging her out.
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<main><a href="`+b.base+`/t/shop/dead">look</a></main>`)
	}))
	defer chat.Close()
	b.do(chromedp.Navigate(strings.Replace(chat.URL, "127.0.0.1", "localhost", 1)))
	b.click("look")
	b.see("Dead letters", "payment.captured")
	if n := len(s.broker.Received()); n != 0 {
		b.t.Errorf("the event was delivered")
	}
}
