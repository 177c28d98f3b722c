package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cacherouter/loadtest/lab/plot"
	"cacherouter/membership/discover"
)

// lameDuck has a thousand callers of one request a second each learn within ten seconds that a server leaves, and
// counts those that fail because it has.
func lameDuck(r *report) error {
	const callers, slowest = 1000, 10 * time.Second
	rng := rand.New(rand.NewPCG(31, 32))
	learned := make([]time.Duration, callers)
	for i := range learned {
		learned[i] = time.Duration(rng.Int64N(int64(slowest)))
	}
	learned[0] = slowest
	r.begin("server serves on for", "requests that fail", "")
	line := plot.Series{Name: "failed"}
	var failed []int
	for _, serves := range []time.Duration{0, 2 * time.Second, 5 * time.Second, 8 * time.Second, slowest, 12 * time.Second} {
		n := 0
		for _, at := range learned {
			for sent := time.Duration(rng.Int64N(int64(time.Second))); sent < at; sent += time.Second {
				if sent > serves {
					n++
				}
			}
		}
		r.row(serves.String(), fmt.Sprint(n), "")
		failed, line.X, line.Y = append(failed, n), append(line.X, serves.Seconds()), append(line.Y, float64(n))
	}
	r.claim("nothing fails once it serves for longer than the slowest caller takes to learn of it", failed[4] == 0 && failed[5] == 0)
	r.claim("before that something always does", failed[0] > 0 && failed[3] > 0)
	r.note("So drain_delay is longer than a load balancer takes, and a server is stopped when it holds no keys at any router.")
	r.lines("Requests that fail when a server leaves", "it serves on for, s", "requests", line)
	return nil
}

// failStatic gives discovery answers that are not to be believed.
func failStatic(r *report) error {
	list := func(n int) (all []discover.Server) {
		for _, name := range names(n) {
			all = append(all, discover.Server{Name: name, Address: name + ":11211", Weight: 1})
		}
		return all
	}
	g, now := discover.Guard{}, time.Unix(0, 0)
	r.begin("answer, every 10 s", "servers in use", "said", "")
	line := plot.Series{Name: "named"}
	used := plot.Series{Name: "used"}
	believed := true
	give := func(what string, n, want int, wantErr error) {
		good, err := g.Judge(list(n), now)
		said := "taken"
		if err != nil {
			said = err.Error()
		}
		r.row(what, fmt.Sprint(len(good)), said, "")
		believed = believed && len(good) == want && errors.Is(err, wantErr)
		line.X, line.Y = append(line.X, now.Sub(time.Unix(0, 0)).Seconds()), append(line.Y, float64(n))
		used.X, used.Y = line.X, append(used.Y, float64(len(good)))
		now = now.Add(10 * time.Second)
	}
	give("100 servers", 100, 100, nil)
	give("none", 0, 100, discover.ErrEmpty)
	give("3 of them", 3, 100, discover.ErrUnconfirmed)
	give("100 again", 100, 100, nil)
	give("one more", 101, 101, nil)
	give("100,000", 100_000, 101, discover.ErrTooMany)
	for _, what := range []string{"50 of them", "the same 50", "a third time"} {
		give(what, 50, 101, discover.ErrUnconfirmed)
	}
	give("a fourth time, after 30 s", 50, 50, nil)
	r.claim("an empty answer, and one that has collapsed, leave the last good set in force; a real change has to be said for 30 s", believed)
	r.lines("What discovery says, and what is used", "s", "servers", line, used)
	return nil
}

// pauses between two attempts of a router to connect, as package backend has them: from 50 ms, twice as long
// each time, up to 2 s, less up to a half at random.
func pause(tries int, rng *rand.Rand) time.Duration {
	const shortest, longest = 50 * time.Millisecond, 2 * time.Second
	wait := min(longest, shortest<<min(tries-1, 10))
	return wait - time.Duration(rng.Int64N(int64(wait/2)))
}

// reconnect has a thousand connections to a server that is away for ten seconds and can then accept 50 each 10 ms.
func reconnect(r *report) error {
	const connections, away = 1000, 10 * time.Second
	type way struct {
		name string
		wait func(tries int, rng *rand.Rand) time.Duration
	}
	ways := []way{
		{"each second", func(int, *rand.Rand) time.Duration { return time.Second }},
		{"doubling, no jitter", func(tries int, _ *rand.Rand) time.Duration {
			return min(2*time.Second, 50*time.Millisecond<<min(tries-1, 10))
		}},
		{"ours", pause},
	}
	r.begin("1,000 connections, server back after 10 s", "attempts while it is away", "most in 10 ms after it is back", "last is back after", "")
	peaks := plot.Series{Name: "attempts in 10 ms"}
	var groups []string
	var peak []int
	var last []time.Duration
	for i, w := range ways {
		rng := rand.New(rand.NewPCG(41, uint64(i)))
		attempts, latest, bins := 0, time.Duration(0), make([]int, 300)
		for range connections {
			at := time.Duration(0)
			for tries := 1; at < away; tries++ {
				attempts++
				at += w.wait(tries, rng)
			}
			bins[(at-away)/(10*time.Millisecond)]++
			latest = max(latest, at-away)
		}
		peak, last = append(peak, slices.Max(bins)), append(last, latest)
		r.row(w.name, fmt.Sprint(attempts), fmt.Sprint(peak[i]), fmt.Sprintf("%d ms", latest.Milliseconds()), "")
		peaks.Y, groups = append(peaks.Y, float64(peak[i])), append(groups, w.name)
	}
	r.claim("without jitter all come at once", peak[0] == connections && peak[1] == connections)
	r.claim("ours never bring a fiftieth of them in 10 ms", peak[2]*50 < connections)
	r.claim("and all are back within 2 s", last[2] <= 2*time.Second)
	r.bars("Most attempts in 10 ms when a server is back", "attempts", true, groups, peaks)
	return nil
}
