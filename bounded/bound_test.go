package bounded

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func must(t testing.TB, c Config) *Bound {
	t.Helper()
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func equal(n int) []int { return slices.Repeat([]int{1}, n) }

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestTakeGoesHomeThenOnThenHome(t *testing.T) {
	b := must(t, Config{Weights: equal(4), PerMille: 1250, Floor: 2, Depth: 2})
	keys := []int{3, 1, 0, 2}
	f := func(rank int, within bool) {
		t.Helper()
		if r, w := b.Take(keys, 0, 1); r != rank || w != within {
			t.Errorf("Take = %d, %t, want %d, %t; in flight %d", r, w, rank, within, b.Total()-1)
		}
	}
	f(0, true)
	f(0, true)
	f(1, true) // T = 3, ceil(1.25*3/4) = 1, so the floor rules
	f(1, true)
	f(2, true)
	f(2, true)
	f(0, true) // T = 7, ceil(8.75/4) = 3
	f(1, true)
	f(2, true)  // T = 9, 11.25/4
	f(0, true)  // T = 10, ceil(12.5/4) = 4
	f(1, true)  // T = 11
	f(2, true)  // T = 12, 15/4
	f(0, true)  // T = 13, ceil(16.25/4) = 5
	f(1, true)  // T = 14
	f(2, true)  // T = 15
	f(0, false) // T = 16, 20/4 = 5 exactly: all three are full, and server 2 is too deep
	f(1, true)  // T = 17, ceil(21.25/4) = 6, which home has by now
}

func TestBarredCandidates(t *testing.T) {
	b := must(t, Config{Weights: equal(4), PerMille: 1000, Floor: 1, Depth: 2})
	f := func(barred uint32, rank int, within bool) {
		t.Helper()
		if r, w := b.Take([]int{0, 1, 2, 3}, barred, 1); r != rank || w != within {
			t.Errorf("Take(barred %b) = %d, %t, want %d, %t", barred, r, w, rank, within)
		}
	}
	f(0b010, 0, true)
	f(0b010, 2, true)  // home full, the next suspended
	f(0b110, 0, false) // nothing else remains
	f(0b001, 1, true)  // home out
	f(0b111, -1, false)
	f(0b1001, 1, true) // T = 5, ceil(5/4) = 2
	f(0b001, 2, true)
	f(0b001, 1, false) // T = 7: home is out, its stand-in takes what nobody has room for
	if got, want := b.Total(), 7; got != want {
		t.Errorf("in flight %d, want %d: what found no candidate is not counted", got, want)
	}
	want := Stats{Forced: 2}
	want.Spilled[1], want.Spilled[2] = 2, 2
	if got := b.Stats(); got != want {
		t.Errorf("Stats = %v, want %v", got, want)
	}
}

func TestCost(t *testing.T) {
	f := func(bytes, keys, cost, late int) {
		t.Helper()
		if got := Cost(bytes, keys); got != cost {
			t.Errorf("Cost(%d, %d) = %d, want %d", bytes, keys, got, cost)
		}
		if got := Late(bytes); got != late {
			t.Errorf("Late(%d) = %d, want %d", bytes, got, late)
		}
	}
	f(0, 1, 1, 0)
	f(16383, 1, 1, 0)
	f(16384, 1, 2, 1)
	f(1<<20, 1, 65, 64)
	f(0, 31, 1, 0)
	f(0, 32, 2, 0)
	f(1<<20, 64, 67, 64)
}

// A large request finds room where nothing is in flight, or it never would.
func TestLargeRequestTakesIdleServer(t *testing.T) {
	b := must(t, Default(equal(3)))
	all := upTo(3)
	if rank, within := b.Take(all, 0, 65); rank != 0 || !within {
		t.Errorf("first Take = %d, %t, want home", rank, within)
	}
	if rank, within := b.Take(all, 0, 65); rank != 1 || !within {
		t.Errorf("second Take = %d, %t, want the next", rank, within)
	}
	b.Add(2, 30) // its cap is ceil(1.25*225/3) = 94
	if rank, within := b.Take(all, 0, 65); rank != 0 || within {
		t.Errorf("Take with all busy = %d, %t, want home, full", rank, within)
	}
}

func TestLateChargeCounts(t *testing.T) {
	b := must(t, Config{Weights: equal(2), PerMille: 1250, Floor: 8, Depth: 1})
	keys := []int{0, 1}
	if rank, within := b.Take(keys, 0, 1); rank != 0 || !within {
		t.Fatalf("Take = %d, %t", rank, within)
	}
	b.Add(0, Late(1<<20)) // 65 in flight here, and the cap is ceil(1.25*66/2) = 42
	if rank, within := b.Take(keys, 0, 1); rank != 1 || !within {
		t.Errorf("Take = %d, %t, want a spill from the server that sends 1 MiB", rank, within)
	}
	b.Release(0, 1+Late(1<<20))
	b.Release(1, 1)
	if b.Total() != 0 || b.InFlight(0) != 0 || b.InFlight(1) != 0 {
		t.Errorf("left in flight: %d, %d and %d", b.Total(), b.InFlight(0), b.InFlight(1))
	}
}

func TestReleaseTooMuchPanics(t *testing.T) {
	b := must(t, Default(equal(2)))
	b.Add(0, 1)
	defer func() {
		if recover() == nil {
			t.Error("released 2 of 1 without a panic")
		}
	}()
	b.Release(0, 2)
}

func TestNextKeepsCounts(t *testing.T) {
	old := must(t, Default([]int{1, 2, 3}))
	old.Add(0, 5)
	old.Add(1, 7)
	old.Add(2, 2)
	b, err := old.Next(Default([]int{3, 0, 1}), []int{2, -1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := []int{b.InFlight(0), b.InFlight(1), b.InFlight(2), b.Total()}, []int{2, 0, 5, 14}; !slices.Equal(got, want) {
		t.Errorf("after the change in flight %d, want %d", got, want)
	}
	old.Release(1, 7) // its server is gone
	old.Release(2, 2)
	b.Release(2, 5)
	if b.Total() != 0 || b.InFlight(0) != 0 || b.InFlight(2) != 0 {
		t.Errorf("left in flight: %d, %d and %d", b.Total(), b.InFlight(0), b.InFlight(2))
	}
}

func TestRefusedConfigs(t *testing.T) {
	good := Default(equal(5))
	f := func(reason string, change func(c *Config)) {
		t.Helper()
		c := good
		c.Weights = slices.Clone(good.Weights)
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("New(%+v) = %v, want an error with %q", c, err, reason)
		}
	}
	must(t, good)
	f("no servers", func(c *Config) { c.Weights = nil })
	f("0.999 times", func(c *Config) { c.PerMille = 999 })
	f("0.000 times", func(c *Config) { c.PerMille = 0 })
	f("at most 1000", func(c *Config) { c.PerMille = 1_000_001 })
	f("floor of 0", func(c *Config) { c.Floor = 0 })
	f("depth -1", func(c *Config) { c.Depth = -1 })
	f("5 servers have 4", func(c *Config) { c.Depth = 5 })
	f("0 to 31", func(c *Config) { c.Weights, c.Depth = equal(50), 32 })
	f("server 3 with weight 65536", func(c *Config) { c.Weights[3] = 65536 })
	f("server 0 with weight -1", func(c *Config) { c.Weights[0] = -1 })
	f("no server has a weight", func(c *Config) { clear(c.Weights) })

	b := must(t, good)
	g := func(reason string, from ...int) {
		t.Helper()
		if _, err := b.Next(good, from); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("Next from %d = %v, want an error with %q", from, err, reason)
		}
	}
	g("origin of 2", 0, 1)
	g("no server 5", 0, 1, 2, 3, 5)
	g("goes on as two", 0, 1, 2, 3, 3)
}

func TestDefaultIsValid(t *testing.T) {
	for n := 1; n < 40; n++ {
		must(t, Default(equal(n)))
	}
}

// capOf is the bound as the definition has it, in rational numbers.
func capOf(c Config, total, server int) int {
	sum := 0
	for _, w := range c.Weights {
		sum += w
	}
	share := big.NewRat(int64(c.PerMille), 1000)
	share.Mul(share, big.NewRat(int64(total), 1))
	share.Mul(share, big.NewRat(int64(c.Weights[server]), int64(sum)))
	ceil := new(big.Int).Add(share.Num(), new(big.Int).Sub(share.Denom(), big.NewInt(1)))
	ceil.Div(ceil, share.Denom())
	return max(c.Floor, int(ceil.Int64()))
}

// bookkeeper does by the definition what Bound does with counters.
type bookkeeper struct {
	config   Config
	inFlight []int
	total    int
}

func (k *bookkeeper) take(candidates []int, barred uint32, cost int) (int, bool) {
	first := -1
	for rank, s := range candidates[:min(len(candidates), k.config.Depth+1)] {
		if barred&(1<<rank) != 0 {
			continue
		}
		if first < 0 {
			first = rank
		}
		if n := k.inFlight[s]; n == 0 || n+cost <= capOf(k.config, k.total+cost, s) {
			k.add(s, cost)
			return rank, true
		}
	}
	if first >= 0 {
		k.add(candidates[first], cost)
	}
	return first, false
}

func (k *bookkeeper) add(server, units int) {
	k.inFlight[server] += units
	k.total += units
}

func anyConfig(t *rapid.T) Config {
	weight := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(0, MaxWeight))
	c := Config{
		Weights:  rapid.SliceOfN(weight, 1, 12).Draw(t, "weights"),
		PerMille: rapid.OneOf(rapid.IntRange(1000, 2000), rapid.IntRange(1000, maxFactor)).Draw(t, "per mille"),
		Floor:    rapid.IntRange(1, 10).Draw(t, "floor"),
	}
	c.Weights[0] = max(1, c.Weights[0])
	c.Depth = rapid.IntRange(0, len(c.Weights)-1).Draw(t, "depth")
	return c
}

func TestBoundFollowsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		b, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		k := &bookkeeper{config: c, inFlight: make([]int, len(c.Weights))}
		var held [][2]int
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				candidates := rapid.Permutation(upTo(len(c.Weights))).Draw(t, "candidates")
				barred := rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32Range(0, 15)).Draw(t, "barred")
				cost := rapid.OneOf(rapid.Just(1), rapid.IntRange(1, 100)).Draw(t, "cost")
				rank, within := b.Take(candidates, barred, cost)
				if r, w := k.take(candidates, barred, cost); r != rank || w != within {
					t.Fatalf("Take = %d, %t, want %d, %t", rank, within, r, w)
				}
				if rank >= 0 {
					held = append(held, [2]int{candidates[rank], cost})
				}
			},
			"release": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing in flight")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				b.Release(held[i][0], held[i][1])
				k.add(held[i][0], -held[i][1])
				held = slices.Delete(held, i, i+1)
			},
			"": func(t *rapid.T) {
				for s, want := range k.inFlight {
					if b.InFlight(s) != want || b.Cap(s) != capOf(c, k.total+1, s) {
						t.Fatalf("server %d has %d of %d, want %d of %d", s, b.InFlight(s), b.Cap(s), want, capOf(c, k.total+1, s))
					}
					for times := 1; times < 4; times++ {
						if got := b.Beyond(s, times); got != (want >= times*b.Cap(s)) {
							t.Fatalf("server %d with %d of %d is beyond %d times that: %t", s, want, b.Cap(s), times, got)
						}
					}
				}
				if b.Total() != k.total {
					t.Fatalf("in flight %d, want %d", b.Total(), k.total)
				}
			},
		})
	})
}

// The caps add up to at least what is in flight, so some server always has room.
func TestSomeServerHasRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		c.Depth = len(c.Weights) - 1
		b, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		candidates := upTo(len(c.Weights))
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			if _, within := b.Take(candidates, 0, 1); !within {
				t.Fatalf("all servers full with %d in flight", b.Total()-1)
			}
		}
	})
}

// Products of the largest values do not wrap.
func TestLargestValues(t *testing.T) {
	c := Config{Weights: slices.Repeat([]int{MaxWeight}, 10_000), PerMille: 1000, Floor: 1}
	b := must(t, c)
	const each = 1 << 30
	for s := range c.Weights {
		b.Add(s, each)
	}
	if got, want := b.Cap(7), each+1; got != want {
		t.Errorf("Cap = %d, want %d", got, want)
	}
	for _, within := range []bool{true, false} { // 2^30 + 10^-4, then 2^30 + 2*10^-4
		if _, got := b.Take([]int{7}, 0, 1); got != within {
			t.Errorf("Take with %d of %d = %t, want %t", b.InFlight(7)-1, b.Cap(7), got, within)
		}
	}
}
