package browsertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/packfinderz/outbox/outboxtest/await"
)

// patience limits a whole test. It is not a measure of speed.
const patience = 2 * time.Minute

// screenshotsVariable names the folder that pictures of the pages go to.
const screenshotsVariable = "OUTBOX_SCREENSHOTS"

// startChromium starts a browser that asks nothing of anybody, and ends with the test.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1360, 900),
	}
	for _, flag := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage",
		"disable-default-apps", "disable-background-timer-throttling", "disable-backgrounding-occluded-windows",
		"disable-renderer-backgrounding", "disable-extensions", "hide-scrollbars", "mute-audio",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocated, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	// Chromium has more to say than its driver understands.
	browser, endBrowser := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(func() {
		// The window's close is asked for first, so that nothing is left of it.
		if err := chromedp.Cancel(browser); err != nil {
			t.Logf("close the browser: %v", err)
		}
		endBrowser()
		end()
	})
	if err := chromedp.Run(browser); err != nil {
		t.Fatalf("start Chromium; scripts/ensure-chromium installs it: %v", err)
	}
	return browser
}

// tab is somebody in front of a window of their own: no cookie is shared with another.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string
	// window is ctx without its limit.
	window context.Context
}

// newTab opens a window on a console.
func newTab(t *testing.T, browser context.Context, base string) *tab {
	t.Helper()
	var window target.ID
	asBrowser := cdp.WithExecutor(browser, chromedp.FromContext(browser).Browser)
	own, err := target.CreateBrowserContext().Do(asBrowser)
	if err == nil {
		window, err = target.CreateTarget("about:blank").WithBrowserContextID(own).WithNewWindow(true).Do(asBrowser)
	}
	if err != nil {
		t.Fatalf("open a window: %v", err)
	}
	ctx, end := chromedp.NewContext(browser, chromedp.WithTargetID(window))
	// The window lives as long as the context that is used first.
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("open a window: %v", err)
	}
	limited, endLimited := context.WithTimeout(ctx, patience)
	t.Cleanup(func() {
		endLimited()
		end()
		if err := target.DisposeBrowserContext(own).Do(asBrowser); err != nil {
			t.Logf("close a window: %v", err)
		}
	})
	return &tab{t: t, ctx: limited, window: ctx, base: strings.TrimSuffix(base, "/")}
}

// do does things one after the other.
func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v\nthe page says: %s", err, b.text("main"))
	}
}

// open goes to a page.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base+path), chromedp.WaitVisible("main"))
	b.until("document.readyState === 'complete'")
}

// click clicks on what has this text, and waits for the page that comes.
func (b *tab) click(text string) {
	b.t.Helper()
	element := fmt.Sprintf(`//*[self::a or self::button][normalize-space(.)=%q]`, text)
	b.do(chromedp.Click(element, chromedp.BySearch, chromedp.NodeVisible))
}

// see waits until the page is whole, its scripts have run, and it has some words.
func (b *tab) see(words ...string) {
	b.t.Helper()
	for _, word := range words {
		b.until(fmt.Sprintf("document.readyState === 'complete' && document.querySelector('main')?.innerText.includes(%s)", quoted(word)))
	}
}

// until waits until an expression is true in the page, or in the one that comes after it.
func (b *tab) until(expression string) {
	b.t.Helper()
	var last error
	err := await.Poll(b.ctx, func() bool {
		var holds bool
		last = chromedp.Run(b.ctx, chromedp.Evaluate("Promise.resolve("+expression+").then(Boolean)", &holds, awaited))
		return last == nil && holds
	})
	if err != nil {
		b.t.Fatalf("wait for %s: %v\nthe page says: %s", expression, last, b.text("main"))
	}
}

// awaited waits for promises.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// evaluate is the value of an expression in the page.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	var value T
	b.do(chromedp.Evaluate(expression, &value, awaited))
	return value
}

// text is what somebody reads in a part of the page.
func (b *tab) text(selector string) string {
	var text string
	ctx, end := context.WithTimeout(b.window, 5*time.Second)
	defer end()
	if err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf("document.querySelector(%s)?.innerText ?? ''", quoted(selector)), &text)); err != nil {
		return "(" + err.Error() + ")"
	}
	return text
}

// fill writes into a field.
func (b *tab) fill(name, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(fmt.Sprintf("main form:not(.search) [name=%q]", name), value, chromedp.ByQuery))
}

// picture keeps what the page looks like, for a person.
func (b *tab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv(screenshotsVariable)
	if folder == "" {
		folder = b.t.TempDir()
	}
	var png []byte
	b.do(chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// quoted is a text as JavaScript writes it.
func quoted(text string) string {
	content, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(content)
}
