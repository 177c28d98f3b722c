package top

import "testing"

func TestFigures(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	seconds := func(s float64) *float64 { return &s }
	f(rate(0), "0")
	f(rate(0.3), "0.3")
	f(rate(9.96), "10")
	f(rate(1234567.8), "1,234,568")
	f(share(0), "0 %")
	f(share(0.0001), "< 0.1 %")
	f(share(0.5), "50.0 %")
	f(share(0.9996), "100 %")
	f(took(nil), "-")
	f(took(seconds(0.00012)), "120 us")
	f(took(seconds(0.0012)), "1.20 ms")
	f(took(seconds(0.0123)), "12.3 ms")
	f(took(seconds(0.123)), "123 ms")
	f(took(seconds(1.234)), "1.23 s")
}
