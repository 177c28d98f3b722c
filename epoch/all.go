package epoch

// A write of all keys, such as flush_all, changes every word. The alternative is one more
// number, which every look-up would have to read as well; and since no compare-and-swap
// spans two words, a fill would have to look at it again after it has begun, and a flush
// at all words anyway, for fills. So those who look up pay nothing, and the proof for one
// key holds for all. The price is some 0.2 ms of one loop, which many flushes on their
// way at once pay only once: the words are changed when the first begins and when the
// last ends.

// BeganAll is Began for all keys.
func (t *Table) BeganAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flushes++
	if t.flushes == 1 {
		t.addAll(oneWrite)
	}
}

// EndedAll is Ended for all keys, and is called once for each BeganAll.
//
// With several flushes on their way it is the last that changes the epochs. Until then
// they are 0, so that an answer from before the first of them is not kept in any case.
func (t *Table) EndedAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flushes--
	if t.flushes == 0 {
		t.addAll(oneEnded - oneWrite)
	}
}

func (t *Table) addAll(n uint64) {
	for i := range t.words {
		t.words[i].Add(n)
	}
}

// FillsAny is Fills for all keys together: it reports whether any fill is on its way.
func (t *Table) FillsAny() bool {
	for i := range t.words {
		if t.words[i].Load()&fillBits != 0 {
			return true
		}
	}
	return false
}
