package compat

import (
	"strings"
	"testing"
)

// A salt stands behind what mcrouter hashes of a key, and costs no memory.
func TestSaltOfMcrouter(t *testing.T) {
	for hash, raw := range map[string]func([]byte) uint64{"ch3": ch3, "crc31": crc31} {
		salted, err := salted(hash, "foo")
		if err != nil {
			t.Fatal(err)
		}
		for key, hashed := range map[string]string{"k": "kfoo", "/a/b/k": "kfoo", "k|#|x": "kfoo", "": "foo", "/a/k": "/a/kfoo"} {
			if salted([]byte(key)) != raw([]byte(hashed)) {
				t.Errorf("%s of %q is not that of %q", hash, key, hashed)
			}
		}
		key := []byte(strings.Repeat("k", 1000)) // longer than any
		if n := testing.AllocsPerRun(100, func() { salted(key) }); n != 0 {
			t.Errorf("%s: %v allocations", hash, n)
		}
	}
	if _, err := salted("ch3", strings.Repeat("x", maxSalt+1)); err == nil {
		t.Error("a salt is taken that there is no room for")
	}
}
