package passwd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheck(t *testing.T) {
	name := filepath.Join(t.TempDir(), "passwords")
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ann:secret\r\n\nbob:with:colon\n")
	synctest.Test(t, func(t *testing.T) {
		f, err := Open(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		check := func(user, password string, want bool) {
			t.Helper()
			if got := f.Check([]byte(user), []byte(password)); got != want {
				t.Errorf("Check(%q, %q) = %t", user, password, got)
			}
		}
		check("ann", "secret", true)
		check("bob", "with:colon", true)
		check("ann", "with:colon", false)
		check("ann", "secre", false)
		check("ann", "", false)
		check("", "", false)
		write("cat:new\n")
		time.Sleep(2 * time.Second)
		check("cat", "new", true)
		check("ann", "secret", false)
	})
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	name := filepath.Join(t.TempDir(), "passwords")
	for text, want := range map[string]string{"ann:x\nbob\n": "line 2", ":x\n": "line 1", "": "no users"} {
		os.WriteFile(name, []byte(text), 0o600)
		if _, err := Open(name, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := Open(name+".missing", nil); err == nil {
		t.Error("a missing file gave no error")
	}
}

func TestFirst(t *testing.T) {
	name := filepath.Join(t.TempDir(), "passwords")
	os.WriteFile(name, []byte("ann:secret\nbob:x\n"), 0o600)
	if u, p, err := First(name); u != "ann" || p != "secret" || err != nil {
		t.Errorf("got %q, %q, %v", u, p, err)
	}
	os.WriteFile(name, []byte("ann:two words\n"), 0o600)
	if _, _, err := First(name); err == nil {
		t.Error("a password with a space, which cannot be sent, gave no error")
	}
}
