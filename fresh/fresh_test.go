package fresh

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestValueFollowsItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func() (string, error) {
		b, err := os.ReadFile(file)
		if string(b) == "bad" {
			err = errors.New("bad content")
		}
		return string(b), err
	}
	if _, err := New(nil, load, file); err == nil {
		t.Error("a missing file gave no error")
	}
	write("one")
	synctest.Test(t, func(t *testing.T) {
		v, err := New(nil, load, file)
		if err != nil {
			t.Fatal(err)
		}
		get := func(want string) {
			t.Helper()
			if got := v.Get(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		get("one")
		write("three")
		get("one") // not looked at again so soon
		time.Sleep(pause)
		get("three")
		write("bad")
		time.Sleep(pause)
		get("three")
		os.Remove(file)
		time.Sleep(pause)
		get("three")
		write("fourth")
		time.Sleep(pause)
		get("fourth")
	})
}
