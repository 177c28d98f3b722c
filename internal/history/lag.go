package history

import (
	"slices"
	"time"
)

// late is a read that returned what had been replaced some time before it began.
type late struct {
	read    *step
	by      time.Duration
	written *step // who had written the value; nil if nobody had
	over    *step // who had replaced it, first of all to return
}

// lags returns all that met a value which a completed write had certainly replaced before, and by how long: from that
// write's return to the call of the one that met it. What nobody had begun to write is late by never. The steps are
// those of one key, in the order of their calls.
//
// A value exists since its writer, or somebody who saw it, has returned; a write called after that replaces it. This
// finds everything for which two operations and a reader suffice, but not what only the order of three or more
// concurrent ones would tell.
func lags(steps []step) []late {
	since := existing(steps)
	writers := make(map[string]*step)
	var writes []*step // of known outcome
	for i := range steps {
		s := &steps[i]
		if s.puts && s.value != "" {
			writers[s.value] = s
		}
		if s.puts && s.known() {
			writes = append(writes, s)
		}
	}
	first := firstToReturn(writes)
	var all []late
	for i := range steps {
		s := &steps[i]
		if s.need != exactly {
			continue
		}
		l := late{read: s, written: writers[s.want]}
		if l.written == nil || l.written.call > s.ret {
			l.by = never
		} else if n := after(writes, since[s.want]); n < len(writes) {
			l.over = first[n]
			l.by = s.op.Call - l.over.ret
		}
		if l.by > 0 {
			all = append(all, l)
		}
	}
	return all
}

// existing returns for each value when it certainly existed.
func existing(steps []step) map[string]time.Duration {
	since := make(map[string]time.Duration)
	note := func(value string, at time.Duration) {
		if before, ok := since[value]; !ok || at < before {
			since[value] = at
		}
	}
	for _, s := range steps {
		if s.need == exactly {
			note(s.want, s.ret)
		}
		if s.puts && s.value != "" {
			note(s.value, s.ret)
		}
	}
	return since
}

// after returns the index of the first of writes, in the order of their calls, that was called after at.
func after(writes []*step, at time.Duration) int {
	n, _ := slices.BinarySearchFunc(writes, at, func(w *step, at time.Duration) int {
		if w.op.Call <= at {
			return -1
		}
		return 1
	})
	return n
}

// firstToReturn returns for each index the write at or after it that returned first.
func firstToReturn(writes []*step) []*step {
	first := slices.Clone(writes)
	for i := len(first) - 2; i >= 0; i-- {
		if first[i+1].ret < first[i].ret {
			first[i] = first[i+1]
		}
	}
	return first
}
