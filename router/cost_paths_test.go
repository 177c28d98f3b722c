//go:build linux

package router_test

import (
	"fmt"
	"strings"
)

// costPath is a form of request, for several keys in turns, and the length of its reply.
type costPath struct {
	name     string
	requests [][]byte
	reply    int
}

const costKeys = 30

// costPaths are what is asked most.
func costPaths() []costPath {
	hit := len(found(nil, costKey(0, 0)))
	return []costPath{
		costPathOf("get", hit+5, func(i int) string { return get(costKey(0, i)) }),
		costPathOf("miss", 5, func(i int) string { return get([]byte(fmt.Sprintf("none:%022d", i))) }),
		costPathOf("set", 8, func(i int) string { return set(string(costKey(0, i)), string(costValue[:100])) }),
		costPathOf("delete", 9, func(i int) string { return fmt.Sprintf("delete %s\r\n", costKey(0, i)) }),
		costPathOf("meta get", 110, func(i int) string { return fmt.Sprintf("mg %s v\r\n", costKey(0, i)) }),
		costPathOf("get of 20 kB", len(found(nil, []byte("large:00")))+5, func(i int) string { return fmt.Sprintf("get large:%02d\r\n", i) }),
		costPathOf("get of 100 kB", len(found(nil, []byte("huge:00")))+5, func(i int) string { return fmt.Sprintf("get huge:%02d\r\n", i) }),
		costPathOf("16 gets", 16*(hit+5), func(i int) string { return many(16, func(j int) string { return get(costKey(j, i)) }) }),
		costPathOf("16 gets of a key", 16*(hit+5), func(i int) string { return many(16, func(int) string { return get(costKey(0, i)) }) }),
		costPathOf("multiget of 10", 10*hit+5, func(i int) string { return multiget(10, i) }),
		costPathOf("multiget of 100", 100*hit+5, func(i int) string { return multiget(100, i) }),
	}
}

func costPathOf(name string, reply int, request func(int) string) costPath {
	p := costPath{name: name, reply: reply}
	for i := range costKeys {
		p.requests = append(p.requests, []byte(request(i)))
	}
	return p
}

func costKey(j, i int) []byte { return []byte(fmt.Sprintf("user:profile:%07d:%07d", j, i)) }

func get(key []byte) string { return fmt.Sprintf("get %s\r\n", key) }

func many(n int, one func(int) string) string {
	var b strings.Builder
	for j := range n {
		b.WriteString(one(j))
	}
	return b.String()
}

func multiget(n, i int) string {
	return "get" + many(n, func(j int) string { return " " + string(costKey(j, i)) }) + "\r\n"
}
