//go:build linux

package load

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cacherouter/loadtest/workload"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLatencySummaryIsOfTheRecordedTimes(t *testing.T) {
	f := func(name string, times []time.Duration, want Latency) {
		t.Helper()
		l := newTally()
		for _, d := range times {
			l.took(d)
		}
		got := summarize(l.latency)
		for i, pair := range [][2]float64{
			{got.Mean, want.Mean}, {got.P50, want.P50}, {got.P90, want.P90},
			{got.P99, want.P99}, {got.P999, want.P999}, {got.Max, want.Max},
		} {
			if math.Abs(pair[0]-pair[1]) > pair[1]/1000+0.001 {
				t.Errorf("%s: figure %d is %v us, want %v us", name, i, pair[0], pair[1])
			}
		}
	}
	var thousand []time.Duration
	for i := range 1000 {
		thousand = append(thousand, time.Duration(i+1)*time.Microsecond)
	}
	slices.Reverse(thousand)
	us := time.Microsecond
	f("nothing", nil, Latency{})
	f("one", []time.Duration{42 * us}, Latency{42, 42, 42, 42, 42, 42})
	f("1..1000 us", thousand, Latency{500.5, 500, 900, 990, 999, 1000})
	f("an hour counts as a minute", []time.Duration{time.Hour}, Latency{6e7, 6e7, 6e7, 6e7, 6e7, 6e7})
	f("a clock that stood still", []time.Duration{0, 0}, Latency{})
}

func TestPercentilesAreOfTheRankedTimesToThreeDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(1, slowest), 1, 300).Draw(t, "times")
		l := newTally()
		for _, d := range times {
			l.took(time.Duration(d))
		}
		slices.Sort(times)
		got := summarize(l.latency)
		for _, q := range []struct{ at, got float64 }{{50, got.P50}, {90, got.P90}, {99, got.P99}} {
			rank := int(q.at/100*float64(len(times)) + 0.5) // HdrHistogram's definition, to the nearest
			want := float64(times[max(rank, 1)-1]) / 1e3
			if math.Abs(q.got-want) > want/1000+0.001 {
				t.Fatalf("p%v is %v us, want %v us", q.at, q.got, want)
			}
		}
	})
}

func TestMergedTalliesEqualOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, left, right := newTally(), newTally(), newTally()
		for _, d := range rapid.SliceOf(rapid.Int64Range(1, slowest)).Draw(t, "times") {
			half := left
			if d%2 == 0 {
				half = right
			}
			for _, l := range []*tally{whole, half} {
				l.took(time.Duration(d))
				l.Gets++
				l.Hits += uint64(d % 3)
				l.Unanswered += uint64(d % 2)
			}
		}
		left.add(right)
		if diff := cmp.Diff(whole.result(time.Second), left.result(time.Second)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestScanText(t *testing.T) {
	f := func(in string, kind replyKind, taken int) {
		t.Helper()
		r, n, _, err := text{}.scan([]byte(in), call{})
		if err != nil || r.kind != kind || n != taken {
			t.Errorf("scan(%q) = kind %d, %d bytes, %v; want kind %d, %d bytes", in, r.kind, n, err, kind, taken)
		}
	}
	f("END\r\n", replyMiss, 5)
	f("STORED\r\nEND\r\n", replyStored, 8)
	f("NOT_STORED\r\n", replyRefused, 12)
	f("ERROR\r\n", replyRefused, 7)
	f("SERVER_ERROR timed out\r\nEND\r\n", replyRefused, 24)
	f("CLIENT_ERROR bad data chunk\r\n", replyRefused, 29)
	f("VALUE k 0 3\r\nabc\r\nEND\r\nEND\r\n", replyHit, 23)
	f("VALUE k 7 0\r\n\r\nEND\r\n", replyHit, 20)
	f("VALUE k 0 5 99\r\na", 0, 0)
}

func TestScanTextRefusesWhatMemcachedNeverSays(t *testing.T) {
	f := func(in string) {
		t.Helper()
		if r, n, _, err := (text{}).scan([]byte(in), call{}); err == nil {
			t.Errorf("scan(%q) = %+v, %d bytes; want an error", in, r, n)
		}
	}
	f("HTTP/1.1 400 Bad Request\r\n")
	f("VALUE k 0\r\n")
	f("VALUE k 0 x\r\nabc\r\nEND\r\n")
	f("VALUE k 0 99999999999999999999\r\n")
	f("VALUE k 0 3\r\nabcd\r\nEND\r\n")
	f("VALUE k 0 3\r\nabc\r\nVALUE j 0 1\r\nx\r\nEND\r\n")
	f(strings.Repeat("x", longestLine+1))
}

func TestHoldsOnlyTheValueOfTheKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(headLen, 200).Draw(t, "size")
		k := spaceOf(20, workload.Fixed(size))
		i := rapid.Uint32Range(0, 19).Draw(t, "key")
		holds := func(i uint32, r reply) bool { _, ok := k.holds(i, r); return ok }
		request := text{k}.appendSet(nil, call{key: i})
		value := request[len("set lt:00000000 0 0 \r\n")+len(strconv.Itoa(size)) : len(request)-2]
		if !holds(i, reply{key: k.key(i), data: value}) {
			t.Fatalf("value %q of %s is not accepted", value, k.key(i))
		}
		if holds(i, reply{key: k.key((i + 1) % 20), data: value}) {
			t.Fatal("value under another key is accepted")
		}
		if holds(i, reply{key: k.key(i), data: value[:size-1]}) {
			t.Fatal("value cut short is accepted")
		}
		at := rapid.IntRange(0, size-1).Draw(t, "at")
		value[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if holds(i, reply{key: k.key(i), data: value}) {
			t.Fatalf("value with a changed byte %d is accepted", at)
		}
	})
}

func TestRepliesAreTheSameHoweverTheyAreSplit(t *testing.T) {
	k := spaceOf(5, "40")
	stream, asked := []byte(nil), []call(nil)
	for i := range uint32(5) {
		stream = append(append(stream, "VALUE "...), k.key(i)...)
		stream = k.appendValue(append(stream, " 0 40\r\n"...), i, 0)
		stream = append(stream, afterValue+"STORED\r\nEND\r\n"...)
		asked = append(asked, call{op: opGet, key: i}, call{op: opSet, key: i}, call{op: opGet, key: i})
	}
	rapid.Check(t, func(t *rapid.T) {
		l := inboxOf(k, text{k})
		c := &client{asked: slices.Clone(asked)}
		for rest := stream; len(rest) > 0; {
			n := copy(l.space(c), rest[:rapid.IntRange(1, len(rest)).Draw(t, "read")])
			if err := l.digest(c, n); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		want := Counts{Hits: 5, Stored: 5, Misses: 5}
		if l.tally.Counts != want || c.waiting() != 0 || len(c.in) != 0 {
			t.Fatalf("counts %+v, waiting for %d, %d bytes left; want %+v", l.tally.Counts, c.waiting(), len(c.in), want)
		}
	})
}

func TestMixKeepsItsRatioAndItsNumber(t *testing.T) {
	p := DefaultPlan("x")
	next, sets, all := mix(p, 0, 1, 110_000), 0, 0
	for q, ok := next(0); ok; q, ok = next(0) {
		all++
		if q.op == opSet {
			sets++
		}
	}
	if all != 110_000 || sets < 9_500 || sets > 10_500 {
		t.Errorf("%d requests with %d sets, want 110000 with about 10000", all, sets)
	}
}

func TestSweepsTogetherVisitEachKeyOnce(t *testing.T) {
	p := DefaultPlan("x")
	p.Keys = 101
	seen := make([]int, p.Keys)
	for lane := range 3 {
		next := sweep(p, lane, 3)
		for q, ok := next(0); ok; q, ok = next(0) {
			seen[q.key]++
		}
	}
	if slices.Min(seen) != 1 || slices.Max(seen) != 1 {
		t.Errorf("keys were visited %v times", seen)
	}
}

func TestPlansThatCannotBeRun(t *testing.T) {
	f := func(change func(*Plan), want string) {
		t.Helper()
		p := DefaultPlan("127.0.0.1:1")
		change(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one about %q", err, want)
		}
	}
	f(func(p *Plan) { p.Target = "" }, "target")
	f(func(p *Plan) { p.Protocol = "http" }, "protocol")
	f(func(p *Plan) { p.Connections = 0 }, "connections")
	f(func(p *Plan) { p.Pipeline = maxPipeline + 1 }, "pipeline")
	f(func(p *Plan) { p.Keys = 0 }, "keys")
	f(func(p *Plan) { p.ValueSize = "1048577" }, "value size is 1048577")
	f(func(p *Plan) { p.Ratio = workload.Ratio{} }, "sets, gets")
	f(func(p *Plan) { p.ValueSize = "big" }, `"big"`)
	f(func(p *Plan) { p.KeySize = "10" }, "key size is 10, not in 11..250")
	f(func(p *Plan) { p.KeySize = "gev:1" }, "key size")
	f(func(p *Plan) { p.Choice = "often" }, `"often"`)
	f(func(p *Plan) { p.Lives = "1500ms" }, "whole seconds")
	f(func(p *Plan) { p.Rate = -1 }, "rate is -1")
	f(func(p *Plan) { p.Rate = math.NaN() }, "rate is NaN")
	f(func(p *Plan) { p.Churn = -1 }, "churn")
	f(func(p *Plan) { p.Origin = &Origin{Capacity: -1} }, "origin")
	f(func(p *Plan) { p.Client = "php" }, `client is "php"`)
	f(func(p *Plan) { p.Client, p.Protocol = Gomemcache, Meta }, "gomemcache speaks text")
	f(func(p *Plan) { p.Client, p.Pipeline = Gomemcache, 2 }, "without pipelining")
	f(func(p *Plan) { p.Wrap, p.Rate = asIs, 1 }, "closed loops")
}

func TestMixAsksForTheHotKeyAsOftenAsThePlanSays(t *testing.T) {
	p := DefaultPlan("x")
	p.Choice = "hotspot:0.5:1:3600"
	const n = 100_000
	next, hot := mix(p, 0, 1, n), 0
	for q, ok := next(0); ok; q, ok = next(0) {
		if q.key == 0 {
			hot++
		}
	}
	if share := float64(hot) / n; share < 0.49 || share > 0.51 {
		t.Errorf("%.3f of the requests are for the hot key, want half", share)
	}
}
