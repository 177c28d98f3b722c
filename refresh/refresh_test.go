package refresh

import (
	"testing"
	"time"
)

func TestLook(t *testing.T) {
	for reply, want := range map[string]Sight{
		"EN\r\n":                         Miss,
		"VA 3 f5 t100\r\nabc\r\n":        Value,
		"VA 0 f0\r\n\r\n":                Value,
		"VA 3 f5 c2 t100 W\r\nabc\r\n":   Won,
		"VA 1 t30 c7 X W\r\nx\r\n":       Won,
		"VA 0 f0 s0 c1 t-1 W\r\n\r\n":    Won,
		"VA 3 f5 Z\r\nabc\r\n":           Old,
		"VA 3 f5 Z X\r\nabc\r\n":         Old,
		"VA 3 f5 X\r\nabc\r\n":           Old,
		"VA 0 f0 Z\r\n\r\n":              Filling,
		"VA 0 f7 Z\r\n\r\n":              Old, // a vivified item has no client flags
		"VA 0 f01 Z":                     Old,
		"VA 3 f0 kW OZ\r\nW Z\r\n":       Value, // key, opaque and value say nothing
		"VA 3 f0\r\n W \r\n":             Value,
		"SERVER_ERROR out of memory\r\n": Unknown,
		"VALUE k 0 1\r\nx\r\n":           Unknown,
		"":                               Unknown,
	} {
		if got := Look([]byte(reply)); got != want {
			t.Errorf("%q is %v, want %v", reply, got, want)
		}
	}
}

func TestFilled(t *testing.T) {
	for reply, want := range map[string]bool{
		"VA 3 f5 W\r\nabc\r\n": true, "VA 0 f0 W\r\n\r\n": false, "VA 0\r\n\r\n": false, "EN\r\n": false, "": false,
	} {
		if got := Filled([]byte(reply)); got != want {
			t.Errorf("%q is filled: %v", reply, got)
		}
	}
}

func TestFlags(t *testing.T) {
	f := func(c Config, unique bool, want string) {
		t.Helper()
		if got := string(c.AppendFlags([]byte("mg k"), unique)); got != "mg k"+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(Config{}, false, " v f")
	f(Config{Before: 30 * second}, true, " v f c R30")
	f(Config{Before: second, Vivify: 2 * second}, false, " v f R1 N2")
}

func TestValidate(t *testing.T) {
	if err := (&Config{Before: longest, Vivify: longest}).Validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []Config{{Before: -second}, {Vivify: -second}, {Before: time.Millisecond}, {Vivify: 1500 * time.Millisecond}, {Before: longest + second}} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func FuzzLook(f *testing.F) {
	f.Add([]byte("VA 3 f5 c2 t100 W\r\nabc\r\n"))
	f.Add([]byte("VA 0 f0 Z"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		s := Look(reply)
		if s == Filling && Filled(reply) {
			t.Errorf("%q is being filled, and filled", reply)
		}
		if len(s.String()) == 0 {
			t.Errorf("%q is nothing", reply)
		}
	})
}
