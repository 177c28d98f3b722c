package embedded

// item is one value under its key, and a link of the list in order of use.
type item struct {
	key   string
	value []byte
	flags uint32
	exp   int64 // the second at which it is dead; 0 for never
	used  int64 // the second of the latest store or fetch
	cas   uint64

	fetched bool // somebody has read it
	stale   bool // marked by md or ms with I; readers are told
	won     bool // a reader has been told to renew it
	binary  bool // its key came as base64 and is shown so

	prev, next *item
}

const (
	// itemHeader is what memcached adds to an item on a 64-bit machine, its cas token
	// included, in bytes. With it, the largest value that fits is the same.
	itemHeader = 56
	// bookkeeping is what an item costs here beyond memcached's size, in bytes: the
	// struct is larger, and the map has its own entry. Measured, rounded up.
	bookkeeping = 128
)

// itemSize is the size that memcached would see: what its item limit is about.
func itemSize(key, value int, flags uint32) int {
	n := itemHeader + key + 1 + value + 2
	if flags != 0 {
		n += 4
	}
	return n
}

func (it *item) size() int { return itemSize(len(it.key), len(it.value), it.flags) }

// cost is what the item takes of the memory limit.
func (it *item) cost() int64 { return int64(it.size() + bookkeeping) }

// recent is a list of items, the latest used first. The zero value is empty.
type recent struct{ first, last *item }

func (l *recent) push(it *item) {
	it.prev, it.next = nil, l.first
	if l.first == nil {
		l.last = it
	} else {
		l.first.prev = it
	}
	l.first = it
}

func (l *recent) remove(it *item) {
	if it.prev == nil {
		l.first = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		l.last = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.prev, it.next = nil, nil
}
