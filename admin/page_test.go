package admin

import (
	"net/http/httptest"
	"strings"
	"testing"

	"cacherouter/membership"
	"cacherouter/membership/gossip"
	"cacherouter/membership/view"
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
	files, err := assets.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, f := range files {
		path := "/assets/" + f.Name()
		if f.Name() == "index.html" {
			path = "/"
		}
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
	t.Logf("%d bytes in %d files", total, len(files))
}
