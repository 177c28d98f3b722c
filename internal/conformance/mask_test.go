package conformance

import "testing"

func TestMask(t *testing.T) {
	f := func(in, want, wantCas string) {
		t.Helper()
		got, cas := Mask(in)
		if got != want || cas != wantCas {
			t.Errorf("Mask(%q) = %q, %q; want %q, %q", in, got, cas, want, wantCas)
		}
	}
	f("", "", "")
	f("STORED\r\nEND\r\n", "STORED\r\nEND\r\n", "")
	f("VALUE k 1 2 77\r\nhi\r\nEND\r\n", "VALUE k 1 2 CAS\r\nhi\r\nEND\r\n", "77")
	f("VALUE k 1 2\r\nhi\r\nEND\r\n", "VALUE k 1 2\r\nhi\r\nEND\r\n", "")
	f("VALUE k 1 17 5\r\nVALUE k 1 2 77\r\nx\r\nEND\r\n", "VALUE k 1 17 CAS\r\nVALUE k 1 2 77\r\nx\r\nEND\r\n", "5")
	f("VA 2 c12 t30 kabc Oc5\r\nhi\r\n", "VA 2 cN tN kabc Oc5\r\nhi\r\n", "12")
	f("HD l3 h1 t-1\r\n", "HD lN h1 t-1\r\n", "")
	f("VERSION 1.6.18\r\n", "VERSION N\r\n", "")
	f("ME a exp=-1 la=3\r\nEN\r\n", "ME a\r\nEN\r\n", "")
	f("VALUE k 1 20\r\nshort", "VALUE k 1 20\r\nshort", "")
}
