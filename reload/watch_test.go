package reload

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A watch tells of a file that is written in place, replaced or linked elsewhere, once, and lets
// one be that is just being written.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) { t.Helper(); do(os.WriteFile(path(name), []byte(text), 0o600)) }
	// As Kubernetes mounts a ConfigMap: the file is a link to one in ..data, which is a link itself.
	do(os.Mkdir(path("v1"), 0o700))
	do(os.Mkdir(path("v2"), 0o700))
	write("v1/c", "one")
	write("v2/c", "two")
	do(os.Symlink("v1", path("..data")))
	do(os.Symlink("..data/c", path("c")))
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		var off atomic.Bool
		w := NewWatch(path("c"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx, func() bool { return !off.Load() }, func() { told.Add(1) })
		}()
		defer func() { cancel(); <-ended }()
		time.Sleep(every / 2)
		tells := func(looks int, want int32) {
			t.Helper()
			time.Sleep(time.Duration(looks) * every)
			if n := told.Swap(0); n != want {
				t.Errorf("told of %d changes, want %d", n, want)
			}
		}
		tells(3, 0)
		do(os.Symlink("v2", path("..new")))
		do(os.Rename(path("..new"), path("..data")))
		tells(1, 0) // it may still be written
		tells(1, 1)
		tells(3, 0)
		write("v2/c", "t") // half written
		tells(1, 0)
		write("v2/c", "three")
		tells(1, 0)
		tells(1, 1)
		do(os.Remove(path("c")))
		write("..c", "three") // the same again
		do(os.Rename(path("..c"), path("c")))
		tells(3, 0)
		do(os.Remove(path("c")))
		tells(3, 1)
		write("c", "three")
		tells(3, 1)
		off.Store(true)
		write("c", "four")
		tells(3, 0)
		off.Store(false)
		tells(3, 1)
	})
}
