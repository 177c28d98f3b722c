package view

import (
	"math/rand/v2"
	"testing"
	"time"

	"cacherouter/membership/damping"
	"cacherouter/membership/health"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func millis(t *rapid.T) time.Time {
	return time.UnixMilli(rapid.Int64Range(-1<<40, 1<<50).Draw(t, "time"))
}

var anyVerdict = rapid.Custom(func(t *rapid.T) Verdict {
	return Verdict{rapid.String().Draw(t, "server"), health.Opinion(rapid.IntRange(0, 3).Draw(t, "opinion")),
		time.Duration(rapid.IntRange(0, 1e6).Draw(t, "for")) * time.Millisecond, rapid.Bool().Draw(t, "flushed")}
})

var anyDecision = rapid.Custom(func(t *rapid.T) Decision {
	st := rapid.IntRange(0, 3)
	return Decision{rapid.String().Draw(t, "server"), rapid.Uint64().Draw(t, "n"), Status(st.Draw(t, "was")),
		Status(st.Draw(t, "now")), millis(t), rapid.Uint64().Draw(t, "list"),
		damping.Mark{Penalty: rapid.IntRange(0, 1e6).Draw(t, "penalty"), Flips: rapid.IntRange(0, 99).Draw(t, "flips"),
			At: millis(t), Suppressed: rapid.Bool().Draw(t, "suppressed")}}
})

var anyObserver = rapid.Custom(func(t *rapid.T) Observer {
	u := rapid.Uint64()
	o := Observer{rapid.String().Draw(t, "router"), u.Draw(t, "boot"), u.Draw(t, "seq"), millis(t), u.Draw(t, "list"),
		u.Draw(t, "pending"), u.Draw(t, "placement"), rapid.Bool().Draw(t, "abstains"), rapid.Bool().Draw(t, "left"), nil}
	if v := rapid.SliceOfN(anyVerdict, 0, 5).Draw(t, "verdicts"); len(v) > 0 {
		o.Verdicts = v
	}
	return o
})

var anyMessage = rapid.Custom(func(t *rapid.T) Message {
	var m Message
	if o := rapid.SliceOfN(anyObserver, 0, 4).Draw(t, "observers"); len(o) > 0 {
		m.Observers = o
	}
	if d := rapid.SliceOfN(anyDecision, 0, 4).Draw(t, "decisions"); len(d) > 0 {
		m.Decisions = d
	}
	return m
})

func TestEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage.Draw(t, "message")
		b := Encode(m)
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if len(b) > 1 {
			if _, err := Decode(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]); err == nil {
				t.Fatal("a message cut short was read")
			}
		}
	})
}

// TestSize: what a router says when nothing is wrong is short, and says nothing of servers.
func TestSize(t *testing.T) {
	w := newWorld(t, 1, 3, 100, Config{})
	b := Encode(Message{Observers: []Observer{w.routers[0].node.self}})
	if len(b) > 80 {
		t.Errorf("%d bytes for a hundred servers that are fine", len(b))
	}
	t.Logf("%d bytes", len(b))
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(Message{Observers: []Observer{{Router: "r", Verdicts: []Verdict{{Server: "s"}}}}, Decisions: []Decision{{Server: "s"}}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(Encode(m))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Fatalf("(-first +second):\n%s", diff)
		}
	})
}

// TestOrderOfDeliveryDoesNotMatter: nodes that get the same messages in different orders,
// some twice, end with the same decisions.
func TestOrderOfDeliveryDoesNotMatter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var ds []Decision
		for range rapid.IntRange(1, 12).Draw(t, "decisions") {
			d := anyDecision.Draw(t, "decision")
			d.Server = rapid.SampledFrom([]string{"s00", "s01"}).Draw(t, "server")
			d.N = rapid.Uint64Range(1, 3).Draw(t, "number")
			d.At = now.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "at")) * time.Second)
			ds = append(ds, d)
		}
		var digests [2]uint64
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for i := range digests {
			w := newJudge()
			n := New(Config{Router: "r", Alone: true}, w, names(3), now)
			rng.Shuffle(len(ds), func(i, j int) { ds[i], ds[j] = ds[j], ds[i] })
			for _, d := range append(ds, ds[0]) {
				n.Step(Message{Decisions: []Decision{d}}, now)
			}
			n.activate(now)
			digests[i] = n.View().Digest
		}
		if digests[0] != digests[1] {
			t.Fatal("the order of messages mattered")
		}
	})
}

// judge finds everything unsure, so that nothing is decided.
type judge struct{}

func newJudge() judge                                      { return judge{} }
func (judge) Verdict(string, time.Time) (v health.Verdict) { return v }
func (judge) Abstains(time.Time) bool                      { return false }
