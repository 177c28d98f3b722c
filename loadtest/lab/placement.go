package lab

import (
	"fmt"
	"math/rand/v2"

	"cacherouter/loadtest/lab/plot"
	"cacherouter/maglev"
	"cacherouter/rendezvous"
	"cacherouter/ring"
)

// picker is any of the product's placements.
type picker interface {
	Pick(dst []int, hash uint64, n int) []int
	Digest() [32]byte
}

// placement makes one.
type placement func(names []string) (picker, error)

func ringOf(names []string) (picker, error)       { return ring.New(names, nil) }
func rendezvousOf(names []string) (picker, error) { return rendezvous.New(names, nil) }

// smallTableOf is rendezvous with fewer slots, which moves keys alike and is built in less time.
func smallTableOf(names []string) (picker, error) { return rendezvous.NewSlots(names, nil, 1<<16) }
func maglevOf(names []string) (picker, error)     { return maglev.New(names, nil) }

var placements = []struct {
	name string
	make placement
}{{"ring", ringOf}, {"rendezvous", rendezvousOf}, {"maglev", maglevOf}}

// names returns the names of n servers.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("k%d", i+1)
	}
	return all
}

// owners returns the index of each hash's home.
func owners(of placement, servers int, hashes []uint64) ([]int, error) {
	p, err := of(names(servers))
	if err != nil {
		return nil, err
	}
	all, pick := []int(nil), []int(nil)
	for _, h := range hashes {
		pick = p.Pick(pick[:0], h, 1)
		all = append(all, pick[0])
	}
	return all, nil
}

// randomHashes are the hashes of that many keys.
func randomHashes(n int) []uint64 {
	r := rand.New(rand.NewPCG(11, 12))
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	return hashes
}

func modulo(r *report) error {
	kept := 0
	for i := range 110 {
		if i%10 == i%11 {
			kept++
		}
	}
	r.compare()
	r.exact("residues of 110 that keep their server", fmt.Sprint(kept), "10")
	r.exact("keys that move", fmt.Sprintf("%.0f %%", 100-100*float64(kept)/110), "91 %")
	r.bars("Modulo from 10 to 11", "residues of 110", false, []string{"kept", "moved"}, plot.Series{Name: "ours", Y: []float64{float64(kept), float64(110 - kept)}})
	return nil
}

func moves(r *report) error {
	hashes := randomHashes(200_000)
	r.begin("share that moves, times the leaving server's", "ours", "source", "")
	sizes := []int{10, 100}
	for _, x := range []struct {
		name      string
		make      placement
		said      []float64
		tolerance float64
	}{
		{"ring", ringOf, []float64{1, 1}, 0},
		{"rendezvous", smallTableOf, []float64{1, 1}, 0},
		{"maglev", maglevOf, []float64{1.02, 1.58}, 0.2},
	} {
		s := plot.Series{Name: x.name}
		for i, n := range sizes {
			before, err1 := owners(x.make, n, hashes)
			after, err2 := owners(x.make, n-1, hashes) // the last has left
			if err1 != nil || err2 != nil {
				return fmt.Errorf("cannot place on %d servers: %w, %w", n, err1, err2)
			}
			its := 0
			for _, o := range before {
				if o == n-1 {
					its++
				}
			}
			times := moved(before, after) * float64(len(hashes)) / float64(its)
			what := fmt.Sprintf("%s, one of %d leaves", x.name, n)
			if x.tolerance == 0 {
				r.exact(what, fmt.Sprintf("%.4f", times), fmt.Sprintf("%.4f", x.said[i]))
			} else {
				r.near(what, "%.2f", times, x.said[i], x.tolerance)
			}
			s.Y = append(s.Y, times)
		}
		if r.charts == nil {
			r.bars("Keys that move when a server leaves", "times its own", false, []string{"10 servers", "100 servers"})
		}
		r.charts[0].Series = append(r.charts[0].Series, s)
	}
	r.note("Envoy's documentation says of maglev that roughly twice the keys move.")
	return nil
}

func remapStorm(r *report) error {
	const rate, hits = 200_000.0, 0.95
	load := func(moved float64) float64 { return rate * (moved + float64((1-moved)*(1-hits))) }
	hashes := randomHashes(200_000)
	r.compare()
	byModulo := make([]int, 0, len(hashes))
	byEleven := make([]int, 0, len(hashes))
	for _, h := range hashes {
		byModulo, byEleven = append(byModulo, int(h%10)), append(byEleven, int(h%11))
	}
	loads := []float64{load(0), load(moved(byModulo, byEleven))}
	r.near("origin's load before, requests a second", "%.0f", loads[0], 10_000, 1)
	r.near("after an eleventh server came, by modulo", "%.0f", loads[1], 183_000, 1000)
	for _, p := range placements {
		ten, err1 := owners(p.make, 10, hashes)
		eleven, err2 := owners(p.make, 11, hashes)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("cannot place: %w, %w", err1, err2)
		}
		l := load(moved(ten, eleven))
		r.near("by "+p.name, "%.0f", l, 27_000, 3000)
		loads = append(loads, l)
	}
	r.note("With a hand-over no key that moves is a miss, and the load stays what it was before.")
	r.bars("Load of the origin", "requests a second", false, []string{"before", "modulo", "ring", "rendezvous", "maglev"}, plot.Series{Name: "load", Y: loads})
	return nil
}

func views(r *report) error {
	hashes := randomHashes(100_000)
	r.compare()
	var shares []float64
	var groups []string
	for _, p := range placements {
		all, err1 := owners(p.make, 10, hashes)
		stale, err2 := owners(p.make, 9, hashes)
		ours, err3 := p.make(names(10))
		theirs, err4 := p.make(names(9))
		for _, err := range []error{err1, err2, err3, err4} {
			if err != nil {
				return err
			}
		}
		share := moved(all, stale)
		r.shape(p.name+": keys for which a router with 9 of 10 servers disagrees", percent(share), "a tenth, silently", share > 0.07 && share < 0.13)
		r.shape(p.name+": their digests", map[bool]string{true: "differ", false: "are equal"}[ours.Digest() != theirs.Digest()], "an alarm is needed", ours.Digest() != theirs.Digest())
		shares, groups = append(shares, share), append(groups, p.name)
	}
	r.bars("Keys two routers disagree about", "share", false, groups, plot.Series{Name: "9 against 10 servers", Y: shares})
	return nil
}
