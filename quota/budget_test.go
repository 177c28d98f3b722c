package quota

import (
	"testing"
	"time"
)

// again asks for n retries, and wants so many to be allowed.
func again(t *testing.T, b *Budget, n, want int) {
	t.Helper()
	got := 0
	for range n {
		if b.Again() {
			got++
		}
	}
	if got != want {
		t.Fatalf("%d of %d retries are allowed, want %d", got, n, want)
	}
}

func TestBudget(t *testing.T) {
	b := &Budget{Retries: Retries{Share: 0.1}}
	again(t, b, 3, 0)
	b.Asked(1000)
	again(t, b, 60, 60)
	b.At(period - 1)
	again(t, b, 60, 40)
	b.At(period) // what was asked and asked again still counts
	again(t, b, 5, 0)
	b.Asked(500)
	again(t, b, 80, 50)
	b.At(2 * period) // the first period is forgotten
	again(t, b, 5, 0)
	b.Asked(100)
	again(t, b, 50, 10)
	b.At(time.Hour)
	again(t, b, 5, 0)
	b.Asked(100)
	again(t, b, 50, 10)
}

// In any case some retries are allowed.
func TestBudgetHasAFloor(t *testing.T) {
	b := &Budget{Retries: Retries{Share: 0.1, Floor: 2}}
	again(t, b, 50, 20)
	b.Asked(100)
	again(t, b, 50, 10)
	b.At(period)
	again(t, b, 1, 0)
	b.At(2 * period)
	again(t, b, 50, 20)
}

func TestNoBudget(t *testing.T) {
	var b *Budget
	b.Asked(1)
	b.At(time.Hour)
	again(t, b, 100, 100)
}
