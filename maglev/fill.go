package maglev

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// free marks an unclaimed slot; rendezvous admits at most 65,535 servers, so no server has this number.
const free = 0xffff

// preference is a server's walk over the slots: at first, then skip further each time. The size is prime, so it meets every slot once.
type preference struct {
	at, skip int
}

// preferenceOf draws offset and skip from two hashes of the name, the second being that of the name followed by a zero byte.
func preferenceOf(name string, size int) preference {
	offset := xxhash.Sum64String(name)
	skip := xxhash.Sum64String(name + "\x00")
	return preference{at: int(offset % uint64(size)), skip: int(skip%uint64(size-1)) + 1}
}

func (p *preference) next(size int) int {
	slot := p.at
	if p.at += p.skip; p.at >= size {
		p.at -= size
	}
	return slot
}

// fill gives every slot to a server.
func (t *Table) fill(size int) {
	walks := make([]preference, len(t.order))
	weights := make([]int, len(t.order))
	for i, server := range t.order {
		walks[i] = preferenceOf(t.names[server], size)
		weights[i] = t.weights[server]
	}
	t.slots = populate(size, walks, weights)
	for slot, i := range t.slots {
		t.slots[slot] = uint16(t.order[i])
	}
}

// populate is the paper's algorithm with weights: in each round a server earns its weight in credit and claims a slot for every
// largest weight it holds (Bresenham's line, no fractions). Claims happen in the order given.
func populate(size int, walks []preference, weights []int) []uint16 {
	slots := make([]uint16, size)
	for i := range slots {
		slots[i] = free
	}
	price := slices.Max(weights)
	credit := make([]int, len(walks))
	for left := size; ; {
		for i := range walks {
			if credit[i] += weights[i]; credit[i] < price {
				continue
			}
			credit[i] -= price
			claim(slots, &walks[i], uint16(i))
			if left--; left == 0 {
				return slots
			}
		}
	}
}

// claim takes the first free slot on the walk.
func claim(slots []uint16, walk *preference, server uint16) {
	for {
		if slot := walk.next(len(slots)); slots[slot] == free {
			slots[slot] = server
			return
		}
	}
}

// byName returns the indexes of names in ascending order of the names.
func byName(names []string) []int {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(names[a], names[b]) })
	return order
}

func prime(n int) bool {
	if n < 2 {
		return false
	}
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}
