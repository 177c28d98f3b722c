package embedded

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"cacherouter/memproto"
)

// metaGet answers an mg.
func (m *memory) metaGet(out []byte, r *memproto.Request) []byte {
	var f metaFlags
	if refusal := f.read(m, r, flagWords(r)); refusal != "" {
		return say(out, refusal)
	}
	it, created := m.get(f.key), false
	if it == nil && f.vivify {
		// As in 1.6.18 such an item does not know that its key is base64.
		it, created = &item{key: string(f.key)}, true
		m.link(it)
	}
	if f.hasExp {
		m.stats.touched(it != nil)
	} else {
		m.stats.got(it != nil)
	}
	switch {
	case f.longOpaque:
		return say(out, lineLongOpaque)
	case it == nil:
		return f.finish(append(out, "EN"...), nil)
	}
	out = m.showItem(out, it, &f, created)
	if !f.noBump {
		m.bump(it)
		it.fetched = true
	}
	return out
}

// showItem appends the reply of an mg that hit. The flags that tell and those that
// change the item take effect in their order.
func (m *memory) showItem(out []byte, it *item, f *metaFlags, created bool) []byte {
	if f.value {
		out = strconv.AppendInt(append(out, "VA "...), int64(len(it.value)), 10)
	} else {
		out = append(out, "HD"...)
	}
	wins := false
	for word, rest := memproto.NextWord(f.words); len(word) > 0; word, rest = memproto.NextWord(rest) {
		switch word[0] {
		case 'T':
			it.exp = f.exp
		case 'N':
			if created {
				it.exp, wins = f.vivifyExp, true
			}
		case 'R':
			wins = wins || !it.won && !created && it.exp != 0 && it.exp < f.recache
		case 'O':
			out = append(append(out, ' '), word...)
		case 'k': // the item knows how its key came, whatever the request says
			out = appendKey(append(out, " k"...), []byte(it.key), it.binary)
		default:
			out = m.appendShown(out, it, word[0])
		}
	}
	out = appendMarks(out, it, wins)
	if f.value {
		out = append(append(out, it.value...), "\r\n"...)
	}
	return out
}

// appendShown appends a flag that tells something of an item.
func (m *memory) appendShown(out []byte, it *item, letter byte) []byte {
	number := func(n uint64) []byte {
		return strconv.AppendUint(append(out, ' ', letter), n, 10)
	}
	switch letter {
	case 's':
		return number(uint64(len(it.value)))
	case 't':
		return appendTTL(out, it, m.now())
	case 'c':
		return number(it.cas)
	case 'f':
		return number(uint64(it.flags))
	case 'l':
		return number(uint64(uint32(m.now() - it.used)))
	case 'h':
		if it.fetched {
			return number(1)
		}
		return number(0)
	}
	return out
}

// appendMarks appends Z if another reader has been told to renew the item, X if it is
// stale and W if this reader shall renew it, and the line end.
func appendMarks(out []byte, it *item, wins bool) []byte {
	if it.won {
		out = append(out, " Z"...)
	}
	if it.stale {
		out = append(out, " X"...)
		wins = wins || !it.won
	}
	if wins {
		out = append(out, " W"...)
		it.won = true
	}
	return append(out, "\r\n"...)
}

// metaDebug answers an me.
func (m *memory) metaDebug(out []byte, r *memproto.Request) []byte {
	m.stats.cmdMeta++
	key := r.Key
	if word, _ := memproto.NextWord(flagWords(r)); string(word) == "b" {
		f := metaFlags{key: r.Key}
		if f.decodeKey() != "" {
			return say(out, memproto.LineBadFormat)
		}
		key = f.key
	}
	it := m.get(key)
	if it == nil {
		return say(out, "EN")
	}
	now := m.now()
	shown, exp, fetched := it.key, int64(-1), "no"
	if it.binary {
		shown = base64.StdEncoding.EncodeToString([]byte(it.key))
	}
	if it.exp != 0 {
		exp = now - it.exp // negative while the item lives, as memcached has it
	}
	if it.fetched {
		fetched = "yes"
	}
	return fmt.Appendf(out, "ME %s exp=%d la=%d cas=%d fetch=%s cls=%d size=%d\r\n",
		shown, exp, now-it.used, it.cas, fetched, slabClass, it.size())
}
