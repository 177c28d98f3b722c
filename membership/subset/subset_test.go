package subset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// counts returns how many clients each router has.
func counts(clients, n int, of func(client int) []int) []int {
	c := make([]int, n)
	for i := range clients {
		for _, r := range of(i) {
			c[r]++
		}
	}
	return c
}

// TestEveryRouterTheSame: 12 routers, subsets of 4, 6 clients: exactly 2 each; and so on
// for every full round.
func TestEveryRouterTheSame(t *testing.T) {
	f := func(clients, n, size, want int) {
		t.Helper()
		for r, got := range counts(clients, n, func(c int) []int { return Of(c, n, size) }) {
			if got != want {
				t.Errorf("%d clients, %d routers, subsets of %d: router %d has %d, want %d", clients, n, size, r, got, want)
			}
		}
	}
	f(6, 12, 4, 2)
	f(3, 12, 4, 1)
	f(300, 300, 30, 30)
	f(400, 200, 20, 40) // 8,000 connections instead of 80,000
	f(10, 5, 5, 10)
}

// TestLastRound: a round that is not full makes routers differ by one client.
func TestLastRound(t *testing.T) {
	c := counts(7, 12, func(c int) []int { return Of(c, 12, 4) })
	if lo, hi := slices.Min(c), slices.Max(c); lo != 2 || hi != 3 {
		t.Errorf("routers have %d to %d clients, want 2 to 3", lo, hi)
	}
}

// TestRandomSubsetsAreUneven is why the subsets are not just random: of 300 routers with
// 300 clients the least and the most busy have about 50 % and 150 % of the mean with
// subsets of 30, and 63 % and 121 % with 90.
func TestRandomSubsetsAreUneven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	f := func(size, least, most int) {
		t.Helper()
		c := counts(300, 300, func(int) []int { return rng.Perm(300)[:size] })
		lo, hi := slices.Min(c)*100/size, slices.Max(c)*100/size
		if lo < least-15 || lo > least+15 || hi < most-15 || hi > most+15 {
			t.Errorf("random subsets of %d: %d %% to %d %% of the mean, want about %d %% to %d %%", size, lo, hi, least, most)
		}
	}
	f(30, 50, 150)
	f(90, 63, 121)
}

func TestSubsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(0, 60).Draw(t, "routers"), rapid.IntRange(-2, 70).Draw(t, "size")
		client := rapid.IntRange(0, 1e6).Draw(t, "client")
		got := Of(client, n, size)
		want := size
		if size < 1 || size > n {
			want = n
		}
		seen := map[int]bool{}
		for _, r := range got {
			if r < 0 || r >= n || seen[r] {
				t.Fatalf("router %d in %v", r, got)
			}
			seen[r] = true
		}
		if len(got) != want || !slices.Equal(got, Of(client, n, size)) {
			t.Fatalf("got %v, want the same %d each time", got, want)
		}
	})
}

func ExampleOf() {
	for client := range 4 {
		fmt.Println(Of(client, 6, 3))
	}
	// Output:
	// [4 2 5]
	// [3 0 1]
	// [2 1 4]
	// [3 5 0]
}
