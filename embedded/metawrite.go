package embedded

import (
	"strconv"

	"cacherouter/memproto"
)

// metaSet answers an ms.
func (m *memory) metaSet(out []byte, r *memproto.Request) []byte {
	var f metaFlags
	_, words := memproto.NextWord(flagWords(r)) // without the length
	refusal := f.read(m, r, words)
	verb, known := setModes[f.mode]
	switch {
	case refusal != "":
		return say(out, refusal)
	case !known:
		return say(out, "CLIENT_ERROR invalid mode for ms M token")
	case f.longOpaque:
		return say(out, lineLongOpaque)
	case f.hasCas && (verb == memproto.Set || verb == memproto.Replace):
		verb = memproto.Cas
	}
	it, end := m.store(&write{
		verb: verb, key: f.key, value: value(r), flags: f.flags, exp: f.exp, cas: f.cas,
		binary: f.binary, yield: f.stale, drops: true,
	})
	out = append(out, metaLine[end]...)
	if end == tooLarge || end == noMemory {
		return append(out, "\r\n"...)
	}
	var cas uint64
	if it != nil {
		cas = it.cas
	}
	return f.finish(out, func(out []byte, letter byte) []byte {
		if letter == 'c' {
			return appendCas(out, cas)
		}
		return out
	})
}

// setModes are the modes of an ms.
var setModes = map[byte]memproto.Verb{
	0:   memproto.Set,
	'S': memproto.Set,
	'E': memproto.Add,
	'A': memproto.Append,
	'P': memproto.Prepend,
	'R': memproto.Replace,
}

// metaLine is what the meta writes say.
var metaLine = [...]string{
	stored:     "HD",
	notStored:  "NS",
	exists:     "EX",
	notFound:   "NF",
	tooLarge:   memproto.LineTooLarge,
	noMemory:   lineNoMemoryStore,
	notNumeric: lineNotNumeric,
}

// lineBadFlag is what md and ma say of every flag that is wrong.
const lineBadFlag = "CLIENT_ERROR invalid or duplicate flag"

// metaDelete answers an md.
func (m *memory) metaDelete(out []byte, r *memproto.Request) []byte {
	var f metaFlags
	switch {
	case f.read(m, r, flagWords(r)) != "":
		return say(out, lineBadFlag)
	case f.longOpaque:
		return say(out, lineLongOpaque)
	}
	return f.finish(append(out, metaLine[m.remove(&f)]...), nil)
}

// remove deletes an item, or with I marks it stale: it is then still served, and its
// next reader is told to renew it.
func (m *memory) remove(f *metaFlags) outcome {
	it := m.get(f.key)
	switch {
	case it == nil:
		m.stats.deleteMisses++
		return notFound
	case f.hasCas && f.cas != it.cas:
		m.stats.deleteMisses++
		return exists
	case !f.stale:
		m.stats.deleteHits++
		m.unlink(it)
		return stored
	}
	if f.hasExp {
		it.exp = f.exp
	}
	it.stale, it.won = true, false
	m.renew(it)
	return stored
}

// metaArithmetic answers an ma.
func (m *memory) metaArithmetic(out []byte, r *memproto.Request) []byte {
	var f metaFlags
	if f.read(m, r, flagWords(r)) != "" {
		return say(out, lineBadFlag)
	}
	d := delta{key: f.key, by: f.by, cas: f.cas}
	switch f.mode {
	case 0, 'I', '+':
		d.up = true
	case 'D', '-':
	default:
		return say(out, "CLIENT_ERROR invalid mode for ma M token")
	}
	it, n, end := m.add(&d)
	created := end == notFound && f.vivify
	if created {
		it, n, end = m.createNumber(&f)
		r.NoReply = false // 1.6.18 is not quiet about a number that it creates
	}
	switch {
	case end == noMemory:
		return say(out, lineNoMemory)
	case end == notNumeric:
		return say(out, lineNotNumeric)
	case f.longOpaque: // too late to leave the number as it was
		return say(out, lineLongOpaque)
	case end == notFound:
		m.stats.missedDelta(d.up)
	}
	if it == nil {
		return f.finish(append(out, metaLine[end]...), nil)
	}
	return m.showNumber(out, it, n, &f, created)
}

// createNumber makes the item that an ma with N finds missing.
func (m *memory) createNumber(f *metaFlags) (*item, uint64, outcome) {
	it := &item{key: string(f.key), value: strconv.AppendUint(nil, f.initial, 10)}
	if end := m.fits(len(it.key), len(it.value), 0); end != stored {
		return nil, 0, noMemory
	}
	m.link(it)
	return it, f.initial, stored
}

// showNumber appends the reply of an ma that has a number. The flags that tell and those
// that change the item take effect in their order.
func (m *memory) showNumber(out []byte, it *item, n uint64, f *metaFlags, created bool) []byte {
	digits := strconv.AppendUint(nil, n, 10)
	if f.value {
		out = strconv.AppendInt(append(out, "VA "...), int64(len(digits)), 10)
	} else {
		out = append(out, "HD"...)
	}
	out = f.finish(out, func(out []byte, letter byte) []byte {
		switch letter {
		case 'c':
			return appendCas(out, it.cas)
		case 't':
			return appendTTL(out, it, m.now())
		case 'T':
			it.exp = f.exp
		case 'N':
			if created {
				it.exp = f.vivifyExp
			}
		}
		return out
	})
	if f.value {
		out = append(append(out, digits...), "\r\n"...)
	}
	return out
}
