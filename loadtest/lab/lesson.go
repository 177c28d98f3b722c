package lab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"cacherouter/balance"
	"cacherouter/loadtest/lab/plot"
)

// queues is three servers with one queue each, before which a balancer stands. A request comes every
// second tick.
type queues struct {
	ends [3][]int // when each request at a server ends, in order
	done [3]int   // how many of those have
	work [3]int
	wait int
	most int // the longest queue that a request found
}

// open is the requests at a server. Of two with as many, the lesson takes the first; ours would take the one
// that was picked longer ago. So the count tells them apart.
func (q *queues) open(server int) int { return len(q.ends[server]) - q.done[server] }

func (q *queues) add(tick, server, cost int) {
	begin := tick
	if e := q.ends[server]; len(e) > 0 {
		begin = max(tick, e[len(e)-1])
	}
	q.wait += begin - tick
	q.work[server] += cost
	q.ends[server] = append(q.ends[server], begin+cost)
}

// see lets the requests end that have by a tick.
func (q *queues) see(tick int) {
	for s := range q.ends {
		for q.done[s] < len(q.ends[s]) && q.ends[s][q.done[s]] <= tick {
			q.done[s]++
		}
		q.most = max(q.most, q.open(s))
	}
}

func (q *queues) String() string {
	last := 0
	for _, e := range q.ends {
		last = max(last, e[len(e)-1])
	}
	return fmt.Sprintf("%.2f %d %d %d/%d/%d", float64(q.wait)/lessonRequests, q.most, last, q.work[0], q.work[1], q.work[2])
}

const lessonRequests = 300

// lessonCosts are drawn by the lesson's generator, in the arithmetic of JavaScript.
func lessonCosts() (costs []int) {
	s := 20240730.0
	for range lessonRequests {
		product := float64(s * 1103515245) // rounded before the sum
		s = math.Mod(product+12345, 1<<31)
		costs = append(costs, 1+int(uint32(s)>>8)%10)
	}
	return costs
}

func runQueues(policy string, slow [3]int) (*queues, error) {
	q := &queues{}
	c := balance.Default(ones(3))
	c.Policy, c.Seed = policy, 1
	c.InFlight = func(server int) int { return 3*q.open(server) + server }
	b, err := balance.New(c)
	if err != nil {
		return nil, err
	}
	all := upTo(3)
	if policy == balance.RoundRobin {
		skip(b, all, 2) // the lesson's turns begin with the first server
	}
	for i, cost := range lessonCosts() {
		q.see(2 * i)
		s := b.Pick(all)
		q.add(2*i, s, cost*slow[s])
	}
	return q, nil
}

// skip picks until a server was picked.
func skip(b *balance.Balancer, candidates []int, last int) {
	for candidates[b.Pick(candidates)] != last {
	}
}

func queueModel(r *report) error {
	sum := 0
	for _, c := range lessonCosts() {
		sum += c
	}
	r.begin("mean wait, longest queue, last end, work of each", "ours", "source", "")
	r.exact("work of all requests", fmt.Sprint(sum), "1679")
	var waits [2][]float64
	for i, x := range []struct {
		policy string
		slow   [3]int
		want   string
	}{
		{balance.RoundRobin, [3]int{1, 1, 1}, "4.04 4 614 545/581/553"},
		{balance.LeastRequest, [3]int{1, 1, 1}, "1.90 2 610 589/567/523"},
		{balance.RoundRobin, [3]int{3, 1, 1}, "170.97 63 1635 1635/581/553"},
		{balance.LeastRequest, [3]int{3, 1, 1}, "56.99 18 843 843/697/701"},
	} {
		q, err := runQueues(x.policy, x.slow)
		if err != nil {
			return err
		}
		r.exact(fmt.Sprintf("%s, servers %v times as slow", x.policy, x.slow), q.String(), x.want)
		waits[i%2] = append(waits[i%2], float64(q.wait)/lessonRequests)
	}
	r.bars("Three queues at 93 %", "mean wait, ticks", true, []string{"equal", "one three times slower"},
		plot.Series{Name: "round robin", Y: waits[0]}, plot.Series{Name: "least request", Y: waits[1]})
	return nil
}

// lessonHash is FNV-1a of 32 bits and the first half of MurmurHash3's finalizer.
func lessonHash(key string) uint32 {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	h = (h ^ h>>15) * 2246822507
	return h ^ h>>13
}

const lessonKeys = 100_000

func lessonKey(i int) string { return fmt.Sprintf("G%d", 1_000_000+i) }

type lessonPoint struct {
	at    uint32
	owner int
}

// lessonRing returns each key's owner on a ring of the lesson's hash.
func lessonRing(keys []uint32, servers, points int) []int {
	var ring []lessonPoint
	for s := range servers {
		for j := range points {
			ring = append(ring, lessonPoint{lessonHash(fmt.Sprintf("k%d#%d", s+1, j)), s})
		}
	}
	slices.SortStableFunc(ring, func(a, b lessonPoint) int { return cmp.Compare(a.at, b.at) })
	owners := make([]int, len(keys))
	for i, h := range keys {
		at, _ := slices.BinarySearchFunc(ring, h, func(p lessonPoint, h uint32) int { return cmp.Compare(p.at, h) })
		owners[i] = ring[at%len(ring)].owner
	}
	return owners
}

func imbalance(owners []int, servers int) float64 {
	counts := make([]int, servers)
	for _, s := range owners {
		counts[s]++
	}
	return float64(slices.Max(counts)) / float64(len(owners)) * float64(servers)
}

// moved returns the share of keys that have another owner.
func moved(before, after []int) float64 {
	n := 0
	for i := range before {
		if before[i] != after[i] {
			n++
		}
	}
	return float64(n) / float64(len(before))
}

// lessonOwners returns the owners of the lesson's keys among three and among four servers: by modulo for
// 0 points.
func lessonOwners(points int) (three, four []int) {
	keys := make([]uint32, lessonKeys)
	for i := range keys {
		keys[i] = lessonHash(lessonKey(i))
	}
	if points > 0 {
		return lessonRing(keys, 3, points), lessonRing(keys, 4, points)
	}
	for _, h := range keys {
		three, four = append(three, int(h%3)), append(four, int(h%4))
	}
	return three, four
}

// productOwners are the same for a placement of ours.
func productOwners(p placement) (three, four []int, err error) {
	hashes := make([]uint64, lessonKeys)
	for i := range hashes {
		hashes[i] = xxhash.Sum64String(lessonKey(i))
	}
	if three, err = owners(p, 3, hashes); err != nil {
		return nil, nil, err
	}
	four, err = owners(p, 4, hashes)
	return three, four, err
}

func hashModel(r *report) error {
	r.begin("imbalance of 3, of 4, share moved", "ours", "source", "")
	f := func(three, four []int) string {
		return fmt.Sprintf("%.3f %.3f %.4f", imbalance(three, 3), imbalance(four, 4), moved(three, four))
	}
	var shares []float64
	for _, x := range []struct {
		points int
		want   string
	}{{0, "1.008 1.004 0.7485"}, {1, "2.021 2.231 0.5577"}, {10, "1.548 1.722 0.1557"}, {100, "1.122 1.204 0.2563"}, {1000, "1.010 1.059 0.2648"}} {
		three, four := lessonOwners(x.points)
		name := fmt.Sprintf("the lesson's ring of %d", x.points)
		if x.points == 0 {
			name = "the lesson's modulo"
		}
		r.exact(name, f(three, four), x.want)
		shares = append(shares, moved(three, four))
	}
	for _, p := range placements {
		three, four, err := productOwners(p.make)
		if err != nil {
			return err
		}
		share := moved(three, four)
		r.shape("our "+p.name, f(three, four), "a quarter moves", math.Abs(share-0.25) < 0.03)
		shares = append(shares, share)
	}
	groups := strings.Fields("modulo ring1 ring10 ring100 ring1000 ring rendezvous maglev")
	r.bars("Keys that move when a fourth server comes", "share", false, groups, plot.Series{Name: "moved", Y: shares})
	return nil
}

func costOfChange(r *report) error {
	r.begin("moved, misses, reads behind, at the store, times, extra", "ours", "source", "")
	const reads, writes, hits, before, warm = 416.67, 97.22, 0.90, 138.89, 60
	var times []float64
	f := func(share float64) string {
		misses := share + float64((1-share)*(1-hits))
		behind := float64(reads * misses) // rounded before the sum
		store := behind + writes
		times = append(times, store/before)
		return fmt.Sprintf("%.4f %.4f %.2f %.2f %.2f %.0f", share, misses, behind, store, store/before, math.Round((store-before)*warm)+0) // + 0 for -0
	}
	r.exact("the lesson's modulo", f(moved(lessonOwners(0))), "0.7485 0.7736 322.35 419.57 3.02 16841")
	r.exact("the lesson's ring of 1000", f(moved(lessonOwners(1000))), "0.2648 0.3383 140.96 238.18 1.71 5957")
	three, four, err := productOwners(rendezvousOf)
	if err != nil {
		return err
	}
	r.row("our rendezvous", f(moved(three, four)), "", "")
	r.row("our rendezvous with a hand-over, where no key is a miss", f(0), "", "")
	r.bars("The store's load while four servers warm up", "times that of before", false, []string{"modulo", "ring of 1000", "rendezvous", "hand-over"}, plot.Series{Name: "load", Y: times})
	return nil
}
