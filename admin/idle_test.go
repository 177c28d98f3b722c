package admin

import (
	"context"
	"fmt"
	"iter"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"cacherouter/backend"
	"cacherouter/memproto"
	"cacherouter/router"
)

// idle is a router that has nothing to do, with as many servers as wanted. Each look at it
// finds that one more request was made of the server with the highest number.
type idle struct {
	table *router.Table
	snap  router.Snapshot
}

func newIdle(n int) *idle {
	shares := slices.Repeat([]float64{1 / float64(n)}, n)
	i := &idle{table: &router.Table{Picker: slices2(n), Shares: func() []float64 { return shares }}}
	i.snap.Requests = make([]uint64, memproto.NumVerbs)
	i.snap.ServersUp = n
	i.snap.Servers = make(map[string]backend.Stats)
	for k := range n {
		s := router.Server{Name: fmt.Sprintf("s%05d", k), Address: fmt.Sprintf("10.0.%d.%d:11211", k/250, k%250)}
		i.table.Servers = append(i.table.Servers, s)
		i.snap.Servers[s.Address] = backend.Stats{Up: 1, Connects: 1}
	}
	return i
}

func (i *idle) Table() *router.Table { return i.table }

func (i *idle) Snapshots(ctx context.Context) ([]router.Snapshot, error) {
	busiest := i.table.Servers[len(i.table.Servers)-1].Address
	st := i.snap.Servers[busiest]
	st.Calls++
	i.snap.Servers[busiest] = st
	i.snap.Requests[memproto.Get]++
	s := i.snap
	s.Requests = append([]uint64(nil), i.snap.Requests...)
	s.Servers = make(map[string]backend.Stats, len(i.snap.Servers))
	for addr, st := range i.snap.Servers {
		s.Servers[addr] = st
	}
	return []router.Snapshot{s}, ctx.Err()
}

// slices2 places keys on n servers in equal slices of the hashes, two times over; the next
// candidates are the next servers.
type slices2 int

func (n slices2) width() uint64 { return math.MaxUint64/(2*uint64(n)) + 1 }

func (n slices2) Pick(dst []int, hash uint64, k int) []int {
	home := int(hash/n.width()) % int(n)
	for i := range min(k, int(n)) {
		dst = append(dst, (home+i)%int(n))
	}
	return dst
}

// Spans yields the slices.
func (n slices2) Spans() iter.Seq2[uint64, int] {
	return func(yield func(uint64, int) bool) {
		for i := range 2 * int(n) {
			last := uint64(i+1)*n.width() - 1
			if i == 2*int(n)-1 {
				last = math.MaxUint64
			}
			if !yield(last, i%int(n)) {
				return
			}
		}
	}
}

// placing is how an idle router places keys.
func (i *idle) placing() *Placing {
	n := len(i.table.Servers)
	return &Placing{Table: i.table, Weights: make([]int, n), Distribution: "slices", Digest: fmt.Sprint(n), Exact: true, Spans: slices2(n).Spans()}
}

// asked is what a server answers to one request.
func asked(s *Server, method, target string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, nil)
	req.RemoteAddr, req.Host = here, "localhost"
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, req)
	return w
}

// wants checks a status and that the answer has a text.
func wants(t *testing.T, w *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), text) {
		t.Errorf("%d %.300q, want %d with %q", w.Code, w.Body, status, text)
	}
}
