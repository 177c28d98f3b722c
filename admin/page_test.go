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
	return &membership.State{Servers: []membership.Server{{Name: "<b>a</b>", Address: "10.0.0.1:11211"}}}
}
func (q *quarrel) Stats() membership.Stats               { return q.stats }
func (*quarrel) Explain(string) (view.Explanation, bool) { return view.Explanation{}, true }
func (*quarrel) Routers() []gossip.Member                { return nil }
func (*quarrel) Drain(string) bool                       { return false }
func (*quarrel) Undrain(string) bool                     { return false }

func (q *quarrel) page(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	New(Config{Membership: q}).http.Handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestBanner: that digests differ is seen at a glance, and goes away when they do not.
func TestBanner(t *testing.T) {
	q := new(quarrel)
	if p := q.page(t); strings.Contains(p, `class="banner"`) || !strings.Contains(p, "The routers agree.") {
		t.Errorf("a banner where all is well: %s", p)
	}
	for _, set := range []func(*view.Stats){
		func(s *view.Stats) { s.PlacementsDiffer = true },
		func(s *view.Stats) { s.ListsDiffer = true },
		func(s *view.Stats) { s.Frozen = true },
		func(s *view.Stats) { s.Abstains = true },
	} {
		q.stats.View = view.Stats{}
		set(&q.stats.View)
		if p := q.page(t); strings.Count(p, `class="banner"`) != 1 || strings.Contains(p, "The routers agree.") {
			t.Errorf("with %+v: %s", q.stats.View, p)
		}
	}
	if p := q.page(t); strings.Contains(p, "<b>a</b>") || !strings.Contains(p, "&lt;b&gt;a&lt;/b&gt;") {
		t.Errorf("a server's name is not escaped: %s", p)
	}
}
