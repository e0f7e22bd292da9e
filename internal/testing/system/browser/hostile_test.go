package browsertest_test

import (
	"context"
	"fmt"
	"net/url"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// hostileStrings each call hit() if a browser takes them for anything but text, or would if the
// policy did not forbid it.
var hostileStrings = []string{
	`<script>hit()</script>`,
	`"><script>hit()</script>`,
	`'><script>hit()</script>`,
	`</script><script>hit()</script>`,
	`</title><script>hit()</script>`,
	`</pre><script>hit()</script>`,
	`</textarea><script>hit()</script>`,
	`</style><script>hit()</script>`,
	`--><script>hit()</script>`,
	`<!--><script>hit()</script>-->`,
	`]]><script>hit()</script>`,
	`<scr<script>ipt>hit()</scr</script>ipt>`,
	`<SCRIPT SRC=//127.0.0.1/x.js></SCRIPT>`,
	`<script/x>hit()</script>`,
	"<script\n>hit()</script\n>",
	"<scr\u0130pt>hit()</script>",
	`<img src=x onerror=hit()>`,
	`<img src="x" onerror="hit()">`,
	`"><img src=x onerror=hit()>`,
	`' onerror='hit()' x='`,
	`" onmouseover="hit()" autofocus onfocus="hit()" x="`,
	"` onerror=hit() `",
	`<svg onload=hit()>`,
	`<svg><script>hit()</script></svg>`,
	`<svg><animate onbegin=hit() attributeName=x dur=1s>`,
	`<math><mtext><table><mglyph><style><img src=x onerror=hit()>`,
	`<iframe src="javascript:parent.hit()"></iframe>`,
	`<iframe srcdoc="<script>parent.hit()</script>"></iframe>`,
	`<object data="javascript:hit()"></object>`,
	`<embed src="javascript:hit()">`,
	`<body onload=hit()>`,
	`<details open ontoggle=hit()>x</details>`,
	`<input autofocus onfocus=hit()>`,
	`<video><source onerror=hit()></video>`,
	`<audio src=x onerror=hit()>`,
	`<marquee onstart=hit()>x</marquee>`,
	`<form action="javascript:hit()"><button>Retry</button></form>`,
	`<a href="javascript:hit()">x</a>`,
	`javascript:hit()`,
	`data:text/html,<script>parent.hit()</script>`,
	`<base href="//evil.example/">`,
	`<link rel=stylesheet href=//evil.example/x.css>`,
	`<meta http-equiv=refresh content="0;url=javascript:hit()">`,
	`<style>@import "//evil.example/x.css";</style>`,
	`<template><script>hit()</script></template>`,
	`{{.Token}}{{template "token" .}}`,
	`${hit()} #{hit()} <%= hit() %>`,
	`\u003cscript\u003ehit()\u003c/script\u003e`,
	`&lt;script&gt;hit()&lt;/script&gt; &#60;img src=x onerror=hit()&#62;`,
	"\u202e>tpircs<\u2028<script>hit()</script>\u2029\ufeff",
}

// watchdog notices what is executed, what the policy had to stop, and what is in the page that
// none of our templates has.
const watchdog = `
window.hits = [];
window.hit = () => { window.hits.push('executed'); };
window.alert = window.confirm = window.prompt = window.hit;
addEventListener('securitypolicyviolation', (event) => window.hits.push('stopped by the policy: ' + event.violatedDirective + ' ' + event.blockedURI));
window.foreign = () => [...document.querySelectorAll('*')].filter((element) =>
	[...element.attributes].some((attribute) => attribute.name.startsWith('on') || /^\s*(javascript|data):/i.test(attribute.value) && ['href', 'src', 'action', 'data'].includes(attribute.name)) ||
	['IMG', 'IFRAME', 'OBJECT', 'EMBED', 'VIDEO', 'AUDIO', 'MARQUEE', 'BASE', 'STYLE', 'TEMPLATE', 'MATH', 'math', 'animate'].includes(element.tagName) ||
	(element.tagName.toLowerCase() === 'script' && !element.src.startsWith(location.origin + '/assets/'))).map((element) => element.outerHTML);
`

// hostile shows strings that would be scripts, wherever events show strings.
func hostile(b *tab, s *shop) {
	if len(hostileStrings) < 50 {
		b.t.Fatalf("%d hostile strings, want 50", len(hostileStrings))
	}
	events := make([]outbox.Event, len(hostileStrings))
	for i, text := range hostileStrings {
		events[i] = outbox.Event{
			ID: uuid.Must(uuid.NewV7()), Type: "poison " + text, Topic: text, Key: text, AggregateType: text, AggregateID: text,
			Headers: map[string]string{"why": text, text: text},
			Payload: []byte(`{` + quoted(text) + `:` + quoted(text) + `}`),
		}
	}
	s.emit(events...)
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(watchdog).Do(ctx)
		return err
	}))
	b.open("/")
	b.see(fmt.Sprintf("%d events are dead", len(events)))
	clean := func(path string) {
		b.t.Helper()
		b.open(path)
		if hits := evaluate[[]string](b, `[...window.hits, ...window.foreign()]`); len(hits) > 0 {
			b.t.Errorf("%s: %q", path, hits)
		}
	}
	for _, path := range []string{"/", "/t/shop/events", "/t/shop/events?state=dead", "/t/shop/dead", "/t/shop/retry?all=1"} {
		clean(path)
	}
	b.picture("hostile")
	for i, text := range hostileStrings {
		clean("/t/shop/events/" + events[i].ID.String())
		if shown := evaluate[string](b, `document.querySelector('.problem pre').textContent`); shown != text {
			b.t.Errorf("the error %q is shown as %q", text, shown)
		}
		if shown := evaluate[bool](b, `[...document.querySelectorAll('table.plain td')].some((cell) => cell.textContent === `+quoted(text)+`)`); !shown {
			b.t.Errorf("the header %q is not shown as it is", text)
		}
	}
	for _, text := range hostileStrings[:5] {
		clean("/t/shop/events?q=" + url.QueryEscape(text))
		clean("/t/shop/events?type=" + url.QueryEscape(text) + "&error=" + url.QueryEscape(text))
		clean("/t/shop/replay?type=" + url.QueryEscape(text))
	}
}
