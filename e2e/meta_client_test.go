package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// metaClient speaks nothing but meta commands, as the newest client libraries do.
type metaClient struct{ c *client }

// metaReply is one reply: its code, its flags by letter, and its value.
type metaReply struct {
	code  string
	flags map[byte]string
	value string
}

// read reads one reply.
func (m metaClient) read() (r metaReply, err error) {
	line, err := m.c.line()
	if err != nil {
		return r, err
	}
	words := strings.Fields(line)
	if len(words) == 0 || len(words[0]) != 2 {
		return r, fmt.Errorf("%q is no meta reply", line)
	}
	r.code, words = words[0], words[1:]
	if r.code == "VA" {
		n, err := strconv.Atoi(words[0])
		if err != nil {
			return r, fmt.Errorf("%q has no length", line)
		}
		words = words[1:]
		data := make([]byte, n+2)
		if _, err := io.ReadFull(m.c.r, data); err != nil {
			return r, err
		}
		r.value = string(data[:n])
	}
	r.flags = make(map[byte]string)
	for _, w := range words {
		r.flags[w[0]] = w[1:]
	}
	return r, nil
}

// do sends one request and reads its reply.
func (m metaClient) do(format string, args ...any) (metaReply, error) {
	if err := m.c.send(fmt.Sprintf(format, args...)); err != nil {
		return metaReply{}, err
	}
	return m.read()
}

// batch sends requests and mn, and reads all replies up to MN.
func (m metaClient) batch(requests string) (all []metaReply, err error) {
	if err := m.c.send(requests + "mn\r\n"); err != nil {
		return nil, err
	}
	for {
		r, err := m.read()
		if err != nil || r.code == "MN" {
			return all, err
		}
		all = append(all, r)
	}
}

// code wants a reply of that code.
func (m metaClient) code(want, format string, args ...any) error {
	r, err := m.do(format, args...)
	if err == nil && r.code != want {
		err = fmt.Errorf("%s: got %s %v, want %s", strings.TrimSpace(fmt.Sprintf(format, args...)), r.code, r.flags, want)
	}
	return err
}

func metaChecks(t *testing.T, addr string) map[string]string {
	outcomes := make(map[string]string)
	for name, check := range metaSuite {
		m := metaClient{connect(t, addr)}
		if _, err := m.c.do("flush_all\r\n"); err != nil {
			t.Fatalf("cannot flush: %v", err)
		}
		outcomes[name] = "pass"
		if err := check(m); err != nil {
			outcomes[name] = err.Error()
		}
	}
	return outcomes
}

var metaSuite = map[string]func(metaClient) error{
	"set get":            metaSetGet,
	"modes":              metaModes,
	"cas":                metaCas,
	"delete":             metaDelete,
	"arithmetic":         metaArithmetic,
	"quiet gets":         metaQuietGets,
	"quiet sets":         metaQuietSets,
	"quiet deletes":      metaQuietDeletes,
	"opaque":             metaOpaque,
	"base64":             metaBase64,
	"one key, two names": metaTwoNames,
	"vivify":             metaVivify,
	"stale":              metaStale,
	"refresh":            metaRefresh,
	"touch":              metaTouch,
	"debug":              metaDebug,
	"errors":             metaErrors,
	"large":              metaLarge,
}

func metaSetGet(m metaClient) error {
	r, err := m.do("ms k 5 T100 F7 c\r\nvalue\r\n")
	if err != nil || r.code != "HD" || r.flags['c'] == "" {
		return fmt.Errorf("ms: %+v, %v", r, err)
	}
	cas := r.flags['c']
	r, err = m.do("mg k v f c t s k\r\n")
	if err != nil || r.code != "VA" || r.value != "value" || r.flags['f'] != "7" || r.flags['c'] != cas || r.flags['s'] != "5" || r.flags['k'] != "k" {
		return fmt.Errorf("mg: %+v, %v", r, err)
	}
	if ttl, _ := strconv.Atoi(r.flags['t']); ttl < 90 || ttl > 100 {
		return fmt.Errorf("ttl %d", ttl)
	}
	return all(m.code("EN", "mg none v\r\n"), m.code("HD", "mg k\r\n"), m.code("HD", "ms empty 0\r\n\r\n"), m.code("VA", "mg empty v\r\n"))
}

func metaModes(m metaClient) error {
	err := all(
		m.code("NS", "ms k 1 MR\r\nx\r\n"), m.code("NS", "ms k 1 MA\r\nx\r\n"),
		m.code("HD", "ms k 1 ME\r\nb\r\n"), m.code("NS", "ms k 1 ME\r\nx\r\n"),
		m.code("HD", "ms k 1 MA\r\nc\r\n"), m.code("HD", "ms k 1 MP\r\na\r\n"))
	if r, e := m.do("mg k v\r\n"); err == nil && (e != nil || r.value != "abc") {
		err = fmt.Errorf("%+v, %v", r, e)
	}
	return err
}

func metaCas(m metaClient) error {
	r, err := m.do("ms k 1 c\r\na\r\n")
	if err != nil {
		return err
	}
	cas, _ := strconv.ParseUint(r.flags['c'], 10, 64)
	return all(
		m.code("EX", "ms k 1 C%d\r\nb\r\n", cas+1000), m.code("HD", "ms k 1 C%d\r\nb\r\n", cas),
		m.code("EX", "md k C%d\r\n", cas), m.code("NF", "ms none 1 C1\r\nb\r\n"))
}

func metaDelete(m metaClient) error {
	return all(m.code("NF", "md k\r\n"), m.code("HD", "ms k 1\r\nx\r\n"), m.code("HD", "md k\r\n"), m.code("EN", "mg k v\r\n"))
}

func metaArithmetic(m metaClient) error {
	for _, step := range []struct{ request, want string }{
		{"ma n N0 J13 v\r\n", "13"}, {"ma n v D7\r\n", "20"}, {"ma n MD D5 v\r\n", "15"}, {"ma n MD D99 v\r\n", "0"},
	} {
		if r, err := m.do("%s", step.request); err != nil || r.value != step.want {
			return fmt.Errorf("%q: %+v, %v", step.request, r, err)
		}
	}
	return m.code("NF", "ma none v\r\n")
}

// metaQuietGets asks for many keys, of which every other is there: only hits are told, in order, then the barrier.
func metaQuietGets(m metaClient) error {
	var want []string
	requests := ""
	for i := range 200 {
		key := fmt.Sprint("key", i)
		if i%2 == 0 {
			if err := m.code("HD", "ms %s %d\r\n%s\r\n", key, len(key), key); err != nil {
				return err
			}
			want = append(want, fmt.Sprint(i))
		}
		requests += fmt.Sprintf("mg %s v k q O%d\r\n", key, i)
	}
	replies, err := m.batch(requests)
	var got []string
	for _, r := range replies {
		if r.value != "key"+r.flags['O'] || r.flags['k'] != r.value {
			return fmt.Errorf("%+v", r)
		}
		got = append(got, r.flags['O'])
	}
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("hits %v", got)
	}
	return err
}

func metaQuietSets(m metaClient) error {
	requests := ""
	for i := range 100 {
		requests += fmt.Sprintf("ms key%d 1 q\r\nx\r\n", i)
	}
	replies, err := m.batch(requests + "ms key1 1 ME q O7\r\ny\r\n" + requests)
	if err == nil && (len(replies) != 1 || replies[0].code != "NS" || replies[0].flags['O'] != "7") {
		err = fmt.Errorf("%+v", replies)
	}
	return err
}

func metaQuietDeletes(m metaClient) error {
	if err := all(m.code("HD", "ms a 1\r\nx\r\n"), m.code("HD", "ms c 1\r\nx\r\n")); err != nil {
		return err
	}
	replies, err := m.batch("md a q\r\nmd b q k\r\nmd c q\r\n")
	if err == nil && (len(replies) != 1 || replies[0].code != "NF" || replies[0].flags['k'] != "b") {
		err = fmt.Errorf("%+v", replies)
	}
	return err
}

func metaOpaque(m metaClient) error {
	opaque := strings.Repeat("o", 31)
	for _, request := range []string{"mg none v k O%s\r\n", "ms k 1 k O%s\r\nx\r\n", "mg k v k O%s\r\n", "ms k 1 ME k O%s\r\nx\r\n", "md k k O%s\r\n", "md k k O%s\r\n", "ma n k O%s\r\n", "ma n N0 k O%s\r\n"} {
		if r, err := m.do(request, opaque); err != nil || r.flags['O'] != opaque || r.flags['k'] == "" {
			return fmt.Errorf("%q: %+v, %v", request, r, err)
		}
	}
	return nil
}

func metaBase64(m metaClient) error {
	for _, key := range []string{"\x00\x01\x02", "with space", "new\r\nline", "ключ", strings.Repeat("\xff", 180)} {
		b := base64.StdEncoding.EncodeToString([]byte(key))
		if err := m.code("HD", "ms %s 3 b\r\nhey\r\n", b); err != nil {
			return err
		}
		r, err := m.do("mg %s b v k\r\n", b)
		if _, binary := r.flags['b']; err != nil || r.value != "hey" || r.flags['k'] != b || !binary {
			return fmt.Errorf("%q: %+v, %v", key, r, err)
		}
		if err := all(m.code("HD", "md %s b\r\n", b), m.code("EN", "mg %s b v\r\n", b)); err != nil {
			return err
		}
	}
	return nil
}

// metaTwoNames stores a key by its text and reads it by its base64, and the other way round.
func metaTwoNames(m metaClient) error {
	for i := range 50 {
		key := fmt.Sprint("plain", i)
		b := base64.StdEncoding.EncodeToString([]byte(key))
		err := all(m.code("HD", "ms %s 1\r\nx\r\n", key), m.code("VA", "mg %s b v\r\n", b),
			m.code("HD", "ms %s 1 b\r\ny\r\n", b), m.code("VA", "mg %s v\r\n", key), m.code("HD", "md %s b\r\n", b), m.code("EN", "mg %s v\r\n", key))
		if err != nil {
			return err
		}
	}
	return nil
}

// has wants a reply with each flag of with and none of without.
func (m metaClient) has(with, without, format string, args ...any) error {
	r, err := m.do(format, args...)
	for i := range len(with) {
		if _, ok := r.flags[with[i]]; !ok && err == nil {
			err = fmt.Errorf("%q: no %c in %+v", format, with[i], r)
		}
	}
	for i := range len(without) {
		if _, ok := r.flags[without[i]]; ok && err == nil {
			err = fmt.Errorf("%q: %c in %+v", format, without[i], r)
		}
	}
	return err
}

func metaVivify(m metaClient) error {
	return all(m.has("W", "Z", "mg k v N30 t\r\n"), m.has("Z", "W", "mg k v N30\r\n"), m.code("HD", "ms k 1 T30\r\nx\r\n"), m.has("", "WZ", "mg k v N30\r\n"))
}

func metaStale(m metaClient) error {
	return all(m.code("HD", "ms k 1 T300\r\nx\r\n"), m.code("HD", "md k I T30\r\n"),
		m.has("WX", "Z", "mg k v\r\n"), m.has("XZ", "W", "mg k v\r\n"), m.code("HD", "ms k 1 T300\r\ny\r\n"), m.has("", "WXZ", "mg k v\r\n"))
}

func metaRefresh(m metaClient) error {
	return all(m.code("HD", "ms k 1 T20\r\nx\r\n"), m.has("", "WZ", "mg k v R10\r\n"), m.has("W", "Z", "mg k v R30\r\n"), m.has("Z", "W", "mg k v R30\r\n"))
}

func metaTouch(m metaClient) error {
	if err := all(m.code("HD", "ms k 1\r\nx\r\n"), m.code("HD", "mg k T100\r\n")); err != nil {
		return err
	}
	r, err := m.do("mg k t h l\r\n")
	if ttl, _ := strconv.Atoi(r.flags['t']); err != nil || ttl < 90 || ttl > 100 || r.flags['h'] != "1" {
		return fmt.Errorf("%+v, %v", r, err)
	}
	return nil
}

func metaDebug(m metaClient) error {
	return all(m.code("EN", "me none\r\n"), m.code("HD", "ms k 1\r\nx\r\n"), m.code("ME", "me k\r\n"))
}

// metaErrors sends what is wrong; each costs one line and nothing else.
func metaErrors(m metaClient) error {
	for _, request := range []string{
		"mg k v v\r\n", "mg k !\r\n", "mg k O" + strings.Repeat("o", 40) + "\r\n", "mg k b v\r\n", "mg " + strings.Repeat("k", 251) + " v\r\n",
		"ms k abc\r\n", "ms k 1 Mx\r\nx\r\n", "ms k 2\r\nabcd", "md k q q\r\n", "ma k Mx\r\n", "ma k Dx\r\n", "mg\r\n", "mx k\r\n",
	} {
		if err := m.c.send(request); err != nil {
			return err
		}
		if line, err := m.c.line(); err != nil || !strings.Contains(line, "ERROR") {
			return fmt.Errorf("%.40q: %q, %v", request, line, err)
		}
		if err := m.code("MN", "mn\r\n"); err != nil {
			return fmt.Errorf("after %.40q: %w", request, err)
		}
	}
	return nil
}

func metaLarge(m metaClient) error {
	value := strings.Repeat("v", 900_000)
	if err := m.code("HD", "ms k %d\r\n%s\r\n", len(value), value); err != nil {
		return err
	}
	if r, err := m.do("mg k v\r\n"); err != nil || r.value != value {
		return fmt.Errorf("%d bytes, %v", len(r.value), err)
	}
	if err := m.c.send(fmt.Sprintf("ms k 1100000\r\n%s\r\n", strings.Repeat("v", 1_100_000))); err != nil {
		return err
	}
	if line, err := m.c.line(); !failed(err) || !strings.Contains(err.Error(), "object too large for cache") {
		return fmt.Errorf("%q, %v", line, err)
	}
	return m.code("EN", "mg k v\r\n")
}
