package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// evil are keys that would do harm in a page that takes them for markup, and one that is no text at all.
var evil = []string{`<img/src=x/onerror=document.title='caught'>`, "</script><script>document.title='caught'</script>", "\xff\xfe&quot;"}

// keepBusy asks for keys, the evil ones often, until the test ends. Requests may fail: servers are killed meanwhile.
func keepBusy(t *testing.T, r *router) {
	c := connect(t, r.addr)
	stop, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-ended })
	go func() {
		defer close(ended)
		pace := time.NewTicker(4 * time.Millisecond)
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-pace.C:
			}
			for j := range 4 {
				key := evil[i%len(evil)]
				if j > 0 {
					key = fmt.Sprint("user:", (7*i+j)%500)
				}
				if got, err := c.get(key); err == nil && got[key] == "" {
					c.set(key, "value of it") // what becomes of it is not looked at
				}
			}
		}
	}()
}

// api decodes a page of the API.
func api[T any](r *router, path string) (v T) {
	r.tb.Helper()
	status, text, err := r.http(path)
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil || status != 200 {
		r.tb.Fatalf("%s: %d %q %v", path, status, text, err)
	}
	return v
}

// row is the row of a server in the page.
func row(server string) string {
	return fmt.Sprintf(`document.querySelector('#rows [data-key="%s"]')`, server)
}

// TestDashboard looks at the page as people do: with a mouse, the keyboard alone, on a desk and on a phone, while servers die and are drained.
func TestDashboard(t *testing.T) {
	servers := memcachedtest.StartN(t, 3)
	r := startWatching(t, pool(servers, "  hot: {min_rate: 20}", "log: {slow: {over: 1us}}"))
	keepBusy(t, r)
	b := openTab(t)
	dir := t.ArtifactDir()
	b.window(1440, 900, "light")
	b.do(chromedp.Navigate("http://" + r.admin + "/"))

	b.is(`document.getElementById('sentence').textContent.startsWith('All is well: 3 servers serve')`)
	showsWhatTheAPISays(b)
	findsKeys(b, r)
	hotKeysAreText(b)
	b.is(`/^over 1 µs: [1-9]/.test(document.getElementById('slow-count').textContent)`)
	b.is(`[...document.querySelectorAll('#slow-rows tr')].some(r => /(get|set) ./.test(r.textContent) && /s[012]/.test(r.textContent) && / (µs|ms|s)$/.test(r.textContent))`)
	removalIsShown(b, r)
	for _, w := range []struct {
		width, height int64
		scheme, name  string
	}{{1440, 900, "light", "desk"}, {1440, 900, "dark", "desk-dark"}, {360, 740, "light", "phone"}, {360, 740, "dark", "phone-dark"}} {
		b.window(w.width, w.height, w.scheme)
		b.usable()
		b.picture(dir, w.name)
	}
	keyboardReachesAll(b)
	drains(b, r)
	b.window(1440, 900, "light")
	b.quiet("/api/v1/where?key=kkk") // that one was refused

	showsAKill(b, r, servers[0])
	b.is(`/s0: [a-z ]+ → down/.test(document.getElementById('change-rows').textContent)`)
	b.picture(dir, "killed")
	b.usable()
	servers[0].Restart()
	b.is(`document.getElementById('health').dataset.level === 'well'`)
	b.quiet("")
}

// showsAKill kills a server, which is to be seen within 2 s. What the machine, busy with something else, takes to let the
// router know of it, or to let the page run at all, is not counted; what it may take in between is why there are three
// tries.
func showsAKill(b *tab, r *router, server *memcachedtest.Server) {
	b.tb.Helper()
	const unreachable = `msg="server unreachable" server=s0`
	b.do(chromedp.Evaluate(`{
		let last = performance.now()
		window.stood = 0 // at most, in milliseconds
		setInterval(() => {
			const now = performance.now()
			window.stood = Math.max(window.stood, now - last - 50)
			last = now
		}, 50)
	}`, nil))
	for range 3 {
		before, began := strings.Count(r.log.String(), unreachable), time.Now()
		b.do(chromedp.Evaluate(`void (window.stood = 0)`, nil))
		server.Stop()
		waitFor(b.tb, "the router to find that s0 cannot be reached", func() error {
			if strings.Count(r.log.String(), unreachable) == before {
				return errors.New("it does not say so")
			}
			return nil
		})
		known := time.Since(began)
		took := b.after(`/down|away|cannot be reached|is out/.test(` + row("s0") + `.textContent) && document.getElementById('sentence').textContent.includes('s0')`)
		var stood float64
		b.do(chromedp.Evaluate(`window.stood`, &stood))
		b.tb.Logf("the router knows of a killed server after %v, and it is shown %v later; the page stood still for %.0f ms", known, took, stood)
		if took <= 2*time.Second+time.Duration(stood*float64(time.Millisecond)) {
			return
		}
		server.Restart()
		b.is(`document.getElementById('health').dataset.level === 'well'`)
	}
	b.tb.Error("each time a killed server was shown after 2 s only")
}

// showsWhatTheAPISays compares what is shown with messages that the page gets at the same time.
func showsWhatTheAPISays(b *tab) {
	b.tb.Helper()
	b.do(chromedp.Evaluate(`{
		const read = id => document.getElementById(id).textContent
		const digits = s => Number(s.replace(/[^0-9.]/g, ''))
		const near = (shown, is) => Math.abs(digits(shown) - is) <= 0.5
		const events = new EventSource('/api/v1/events')
		events.onmessage = m => setTimeout(() => { // when the page has had it, too
			const e = JSON.parse(m.data)
			window.same = near(read('f-requests'), e.overview.requests_per_second) && e.overview.requests_per_second > 10 &&
				near(read('f-clients'), e.overview.clients) && Math.abs(digits(read('f-hits')) - 100 * e.overview.hit_ratio) <= 0.051 &&
				read('f-p99') !== '–' && e.servers.servers.every(s => {
					const cells = document.querySelector('#rows [data-key="' + s.name + '"]').children
					return near(cells[3].textContent, s.requests_per_second) && Math.abs(digits(cells[5].textContent) - 100 * s.key_share) <= 0.051
				})
			if (window.same) events.close()
		}, 100)
	}`, nil))
	b.is(`window.same`)
	b.is(`document.querySelector('#s-requests path').getAttribute('d').length > 8`)
}

// findsKeys uses the search box with keys of all kinds.
func findsKeys(b *tab, r *router) {
	b.tb.Helper()
	where := api[struct{ Home string }](r, "/api/v1/where?key=user:42")
	b.press("/")
	b.is(`document.activeElement.id === 'key'`)
	b.fill("key", "")
	b.do(chromedp.SendKeys("#key", "user:42"+kb.Enter, chromedp.ByQuery))
	b.is(fmt.Sprintf(`document.getElementById('where-title')?.textContent === 'user:42 is on %s'`, where.Home))
	b.is(`document.activeElement.id === 'where'`)
	b.press(kb.Escape)
	b.is(`document.getElementById('where').hidden && document.activeElement.id === 'key'`)

	find := func(key, want string) {
		b.fill("key", key)
		b.do(chromedp.SendKeys("#key", kb.Enter, chromedp.ByQuery))
		b.is(fmt.Sprintf(`document.getElementById('where').textContent.includes(%q)`, want))
	}
	find(strings.Repeat("k", 100000), "at most 250")
	find(strings.Repeat("k", 251), "251 bytes")
	find(evil[0], evil[0])
	find(`\x00\xff`, `\x00\xff is on`)
	if n := value[int](b, `document.querySelectorAll('#where img, #where script').length`); n > 0 {
		b.tb.Errorf("a key has made %d elements", n)
	}
	b.press(kb.Escape)
	status, text, err := r.http("/api/v1/where?key=" + url.QueryEscape(strings.Repeat("\x00", 251)))
	if status != 400 || err != nil || !strings.Contains(text, "at most 250") {
		b.tb.Errorf("a key that is too long: %d %q %v", status, text, err)
	}
}

// hotKeysAreText wants the evil keys in the list, as text.
func hotKeysAreText(b *tab) {
	b.tb.Helper()
	for _, key := range []string{evil[0], evil[1], `\xff\xfe&quot;`} {
		find := fmt.Sprintf(`[...document.querySelectorAll('#hot-rows .find')].find(e => e.textContent === %q)`, key)
		b.is(find)
		b.do(chromedp.Evaluate(find+`.click()`, nil))
		b.is(fmt.Sprintf(`document.getElementById('where-title')?.textContent.startsWith(%q)`, key+" is on"))
	}
	if value[string](b, `document.title`) == "caught" || value[int](b, `document.querySelectorAll('#hot img, #hot script').length`) > 0 {
		b.tb.Error("a key was taken for markup")
	}
	b.press(kb.Escape)
}

// removalIsShown looks at a server and wants to see where its keys would go, as the API says.
func removalIsShown(b *tab, r *router) {
	b.tb.Helper()
	p := api[struct {
		Servers []struct {
			Name   string
			Takers []struct {
				Server string
				Share  float64
			}
		}
	}](r, "/api/v1/placement")
	b.do(chromedp.Focus(`#rows [data-key="s1"] .name`, chromedp.ByQuery))
	for _, s := range p.Servers {
		for _, taker := range s.Takers {
			if s.Name == "s1" {
				b.is(fmt.Sprintf(`[...document.querySelectorAll('#takers li')].some(e => e.textContent === '%s%.1f %%')`, taker.Server, 100*taker.Share))
			}
		}
	}
	b.is(`document.getElementById('effect').textContent.startsWith('If s1 fails') && document.querySelectorAll('.ribbons path').length === 2`)
	b.do(chromedp.Click(`.strip > span:nth-child(3)`, chromedp.ByQuery))
	b.is(`document.getElementById('effect').textContent.startsWith('If s2 fails')`)
	b.press(kb.Escape)
}

// keyboardReachesAll goes through the page with the tab key alone: all that can be used is reached, in the order in which it is
// seen, and one sees where one is.
func keyboardReachesAll(b *tab) {
	b.tb.Helper()
	b.do(chromedp.Evaluate(`document.activeElement.blur(); scrollTo(0, 0)`, nil))
	total := value[int](b, `window.reached = new Set(), [...document.querySelectorAll('a[href], button, input')].filter(e => e.checkVisibility() && !e.closest('#hot-rows')).length`)
	for range total + 16 { // and hot keys, which come and go
		b.press(kb.Tab)
		if !value[bool](b, `(() => {
			const e = document.activeElement
			if (e === document.body) return true
			window.reached.add(e)
			return getComputedStyle(e).outlineStyle !== 'none'
		})()`) {
			b.tb.Errorf("the focus is not seen at %s", value[string](b, `document.activeElement.outerHTML`))
		}
	}
	if got := value[int](b, `[...window.reached].filter(e => !e.closest('#hot-rows')).length`); got < total {
		b.tb.Errorf("the keyboard reaches %d of %d", got, total)
	}
}

// drains moves a server's keys away by what the page offers, and back.
func drains(b *tab, r *router) {
	b.tb.Helper()
	button := `[aria-label="Drain s2"]`
	b.do(chromedp.Click(button, chromedp.ByQuery))
	b.is(`document.getElementById('ask').open && document.activeElement.id === 'ask-yes'`)
	b.usable()
	b.press(kb.Escape)
	b.is(`!document.getElementById('ask').open`)
	if m, err := r.members(); err != nil || m.Servers[2].Status != "in" {
		b.tb.Errorf("after Escape: %+v %v", m, err)
	}
	b.do(chromedp.Click(button, chromedp.ByQuery), chromedp.Click("#ask-yes", chromedp.ByQuery))
	b.is(row("s2") + `.textContent.includes('draining')`)
	r.waitStatus("s2", "draining")
	b.is(`document.getElementById('sentence').textContent.includes('1 drains')`)
	b.is(`document.getElementById('handover-text').textContent.includes('s2 gave up keys')`)
	b.is(row("s2") + `.textContent.includes('may be stopped')`)
	b.do(chromedp.Click(`[aria-label="Undrain s2"]`, chromedp.ByQuery), chromedp.Click("#ask-yes", chromedp.ByQuery))
	r.waitStatus("s2", "in")
	b.is(`document.getElementById('sentence').textContent.startsWith('All is well: 3 servers serve')`)
}

// Another site's page, and one whose name was made to point here, change nothing and read nothing.
func TestDashboardIsNotForOtherSites(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	r := startWatching(t, pool(servers))
	r.waitHTTP("/readyz", 200)
	f := func(method, path, host, origin string, status int) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+r.admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if req.Host = host; host == "" {
			req.Host = r.admin
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s %s for %q from %q: %s, want %d", method, path, host, origin, resp.Status, status)
		}
	}
	f("POST", "/api/v1/drain?server=s0", "", "https://evil.example", 403)
	f("POST", "/api/v1/reload", "", "https://evil.example", 403)
	f("POST", "/api/v1/drain?server=s0", "rebound.example", "http://rebound.example", 421)
	f("GET", "/api/v1/hotkeys", "rebound.example", "", 421)
	f("POST", "/api/v1/drain?server=s0", "", "http://"+r.admin, 200)
}
