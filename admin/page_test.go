package admin

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cacherouter/membership"
	"cacherouter/membership/gossip"
	"cacherouter/membership/view"

	"github.com/google/go-cmp/cmp"
)

// quarrel is a membership whose routers may differ.
type quarrel struct{ stats membership.Stats }

func (q *quarrel) View() *membership.State {
	return &membership.State{Servers: []membership.Server{{Name: "a", Address: "10.0.0.1:11211", Reads: true}}}
}
func (q *quarrel) Stats() membership.Stats               { return q.stats }
func (*quarrel) Explain(string) (view.Explanation, bool) { return view.Explanation{}, true }
func (*quarrel) Routers() []gossip.Member                { return nil }
func (*quarrel) Neighbours() []view.Neighbour            { return nil }
func (*quarrel) Drain(string) bool                       { return false }
func (*quarrel) Undrain(string) bool                     { return false }

// TestQuarrel: what is wrong between routers is told in one sentence each, and no longer
// when it is over.
func TestQuarrel(t *testing.T) {
	q := new(quarrel)
	problems := func() []Problem {
		r := New(Config{Membership: q}).routersOf()
		return problemsOf(&r)
	}
	if p := problems(); len(p) > 0 {
		t.Errorf("problems where all is well: %v", p)
	}
	for _, set := range []func(*view.Stats){
		func(s *view.Stats) { s.PlacementsDiffer = true },
		func(s *view.Stats) { s.ListsDiffer = true },
		func(s *view.Stats) { s.Frozen = true },
		func(s *view.Stats) { s.Abstains = true },
	} {
		q.stats.View = view.Stats{}
		set(&q.stats.View)
		if p := problems(); len(p) != 1 || p[0].Text == "" || p[0].Level == levelWell {
			t.Errorf("with %+v: %v", q.stats.View, p)
		}
	}
}

// unpacked returns a file as a browser gets it that takes gzip.
func unpacked(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	req := httptest.NewRequest("GET", path, nil)
	req.Header.Set("Accept-Encoding", "gzip, br")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	z, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("%s: %v, %v", path, w.Header(), err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Modules keep their names to themselves, and each is there once, behind those that it needs.
func TestBundle(t *testing.T) {
	files := map[string]string{
		"a": "// a\n\nimport {b, $} from './b.js'\nimport {c} from './c.js'\n\nconst own = 1\nb(c, $)\n",
		"b": "import {c} from './c.js'\nconst own = 2\nexport async function b() { return c }\nexport const $ = 3\n",
		"c": "export function c() {}\n",
	}
	want := `const modules = {}

modules.c = (() => {
function c() {}
return {c}
})()

modules.b = (() => {
const {c} = modules.c
const own = 2
async function b() { return c }
const $ = 3
return {b, $}
})()

modules.a = (() => {
// a

const {b, $} = modules.b
const {c} = modules.c

const own = 1
b(c, $)
return {}
})()
`
	if diff := cmp.Diff(want, bundled("a", func(name string) string { return files[name] })); diff != "" {
		t.Error(diff)
	}
	if js := string(site()["/assets/page.js"].plain); strings.Contains(js, "\nimport ") || strings.Contains(js, "\nexport ") {
		t.Error("some imports or exports of the page's modules are not understood")
	}
}

// maxPage is how many bytes the page and all that belongs to it may have.
const maxPage = 150 << 10

// TestAssets: the page is small, asks for nothing that is not here, and nothing in it makes
// markup of data.
func TestAssets(t *testing.T) {
	h := New(Config{Router: newIdle(1)}).http.Handler
	get := func(path, tag string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("GET", path, nil)
		req.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
	total := 0
	for path := range site() {
		path = strings.TrimSuffix(path, "{$}")
		w := get(path, "")
		text := w.Body.String()
		total += len(text)
		if w.Code != 200 || w.Header().Get("ETag") == "" || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if again := get(path, w.Header().Get("ETag")); again.Code != 304 {
			t.Errorf("%s: %d for one who has it", path, again.Code)
		}
		if packed := unpacked(t, h, path); packed != text {
			t.Errorf("%s: packed it is something else", path)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "https://", " style=", " onclick="} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
		if n := strings.Count(text, "http://"); n > strings.Count(text, "http://www.w3.org/2000/svg") {
			t.Errorf("%s names other hosts", path)
		}
	}
	if total > maxPage {
		t.Errorf("the page has %d bytes, of %d", total, maxPage)
	}
	if w := get("/assets/nothing.js", ""); w.Code != 404 {
		t.Errorf("what is not there: %d", w.Code)
	}
	t.Logf("%d bytes in %d files", total, len(site()))
}
