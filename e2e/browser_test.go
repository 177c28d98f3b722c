package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a page in a browser without a window. What the browser complains of on it is an error of the test.
type tab struct {
	tb  testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string // guarded by mu
}

// openTab starts a browser that ends with the test.
func openTab(tb testing.TB) *tab {
	tb.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(memcachedtest.Need(tb, "chromium")), chromedp.WSURLReadTimeout(2*patience),
		chromedp.NoSandbox, // tests run as root, which it refuses
		chromedp.Flag("disable-dev-shm-usage", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(ctx, chromedp.WithErrorf(tb.Logf)) // it complains of what newer browsers tell
	tb.Cleanup(func() { end(); stop() })
	t := &tab{tb: tb, ctx: ctx}
	chromedp.ListenTarget(ctx, t.hear)
	t.do(log.Enable())
	return t
}

// hear notes errors.
func (t *tab) hear(event any) {
	complaint := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		complaint = fmt.Sprint("exception ", e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			complaint = fmt.Sprintf("console %s %+v", e.Type, e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			complaint = fmt.Sprintf("log %s %s", e.Entry.Text, e.Entry.URL)
		}
	}
	if complaint != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.complaints = append(t.complaints, complaint)
	}
}

// quiet fails the test for what the browser has complained of, but for what has the text, if that is not empty.
func (t *tab) quiet(but string) {
	t.tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.complaints {
		if but == "" || !strings.Contains(c, but) {
			t.tb.Errorf("the browser complains: %s", c)
		}
	}
	t.complaints = nil
}

func (t *tab) do(actions ...chromedp.Action) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, 2*patience)
	defer cancel()
	if chromedp.FromContext(t.ctx).Target == nil { // the first one starts the browser, which ends with its context
		ctx = t.ctx
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.tb.Fatalf("in the browser: %v", err)
	}
}

// value evaluates an expression in the page.
func value[T any](t *tab, script string) (v T) {
	t.tb.Helper()
	t.do(chromedp.Evaluate(script, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}

// is waits until an expression is true in the page. The page looks, which costs it less than being asked over and over.
func (t *tab) is(script string) {
	t.tb.Helper()
	if !value[bool](t, fmt.Sprintf(`new Promise(done => {
		const look = () => { try { return Boolean(%s) } catch { return false } }
		const end = Date.now() + %d
		const again = () => look() ? done(true) : Date.now() > end ? done(false) : setTimeout(again, 20)
		again()
	})`, script, patience.Milliseconds())) {
		t.tb.Fatalf("waited %v in vain for %s in:\n%s", patience, script, value[string](t, "document.body.innerText"))
	}
}

// fill puts a text into a field at once.
func (t *tab) fill(id, text string) {
	t.tb.Helper()
	t.do(chromedp.Evaluate(fmt.Sprintf("document.getElementById(%q).value = %q", id, text), nil))
}

// window sets the size of the window and whether the system is dark.
func (t *tab) window(width, height int64, scheme string) {
	t.tb.Helper()
	t.do(chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// press types what is no text.
func (t *tab) press(key string) {
	t.tb.Helper()
	t.do(chromedp.KeyEvent(key))
}

// picture keeps a picture of the page, in the test's folder for artefacts: see go help testflag, -artifacts.
func (t *tab) picture(dir, name string) {
	t.tb.Helper()
	var b []byte
	t.do(chromedp.FullScreenshot(&b, 100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b, 0o644); err != nil {
		t.tb.Fatal(err)
	}
}

// usable checks what keeps people from using the page.
func (t *tab) usable() {
	t.tb.Helper()
	script, err := os.ReadFile("testdata/dashboard/check.js")
	if err != nil {
		t.tb.Fatal(err)
	}
	for _, complaint := range value[[]string](t, string(script)) {
		t.tb.Errorf("%s", complaint)
	}
}

// after waits for an expression to become true and returns how long that took.
func (t *tab) after(script string) time.Duration {
	t.tb.Helper()
	began := time.Now()
	t.is(script)
	return time.Since(began)
}
