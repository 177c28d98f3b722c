package mcrouter

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	v, err := parse([]byte(`// a comment
{ /* another,
     of two lines */ "a": [1, "x // no comment", true, null,], // a comma
  "b c": {"d": -1.5e3,},
}
`))
	if err != nil {
		t.Fatal(err)
	}
	if a := v.get("a"); a.line != 3 || len(a.items) != 4 || a.items[1].text != "x // no comment" || !a.items[2].truth || a.items[3].kind != null || a.items[1].path != "a[1]" {
		t.Errorf("a is %+v", a)
	}
	if d := v.get("b c").get("d"); d.line != 4 || d.path != `"b c".d` {
		t.Errorf("d is %+v", d)
	} else if f, err := d.float(0); f != -1500 || err != nil {
		t.Errorf("d is %v, %v", f, err)
	}
}

func TestParseSaysWhereAndWhat(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	f("", "ends too early")
	f("{\n\"a\": 1,\n\"a\": 2}", "line 3: a is there twice")
	f("{\n\"a\": }", "line 2")
	f("{\"a\": 1}\n{}", "line 2: something follows")
	f("{} /* ...", "does not end")
	f("[1 2]", "line 1")
	f("{\"a\"", "line 1")
	f(strings.Repeat("[", 500), "lies too deep")
}
