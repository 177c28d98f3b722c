package reactor

import (
	"bufio"
	"io"
	"testing"
	"time"
)

// Each turn is counted once by its length and once by how many connections it served.
func TestTurns(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		l := startLoops(t, 1, c)[0]
		addr, _ := serveEcho(t, []*Loop{l}, "tcp", "127.0.0.1:0")
		const conns, lines = 5, 20
		for range conns {
			nc := dial(t, addr)
			r := bufio.NewReader(nc)
			for range lines {
				io.WriteString(nc, "line\n")
				if _, err := r.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
		}
		was := make(chan Stats)
		const long = 3 * time.Millisecond
		l.Post(func() {
			for l.Now().Add(long).After(time.Now()) { // a turn that takes its time
			}
			was <- l.Stats()
		})
		before := <-was
		l.Post(func() { was <- l.Stats() })
		st := <-was
		batches := uint64(0)
		for _, n := range st.Batches {
			batches += n
		}
		if batches+1 != st.Turns || st.Lengths.Count()+1 != st.Turns { // the present one has neither yet
			t.Errorf("of %d turns %d have a size and %d a length", st.Turns, batches, st.Lengths.Count())
		}
		if st.Served < conns*lines || uint64(st.Lengths.Sum()) != st.BusyNanos {
			t.Errorf("%d times a connection was served, and turns took %v of %v", st.Served, st.Lengths.Sum(), time.Duration(st.BusyNanos))
		}
		since := st.Lengths.Since(&before.Lengths)
		if got := since.Quantile(1); got < long*9/10 {
			t.Errorf("the longest turn took %v, want over %v", got, long)
		}
	})
}
