package main

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

// freeAddress returns an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// startNutcracker runs nutcracker with a configuration until the test ends.
func startNutcracker(t *testing.T, file string, listens ...string) {
	t.Helper()
	_, stats, _ := net.SplitHostPort(freeAddress(t))
	log := new(memcachedtest.Output)
	cmd := exec.Command("nutcracker", "-c", file, "-s", stats, "-a", "127.0.0.1", "-p", filepath.Join(t.TempDir(), "pid"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for _, addr := range listens {
		for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			if c, err := net.Dial("tcp", addr); err == nil {
				c.Close()
				break
			}
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("nutcracker does not listen on %s: %s", addr, log)
			}
		}
	}
}

// What clients have stored through nutcracker they find through the router that has the imported file, and on no other server than before.
func TestImportedKeysAreWhereNutcrackerPutThem(t *testing.T) {
	memcachedtest.Need(t, "nutcracker")
	s := memcachedtest.Addrs(memcachedtest.StartN(t, 5, memcachedtest.Steady...))
	listens := []string{freeAddress(t), freeAddress(t), freeAddress(t)}
	file := writeConfig(t, fmt.Sprintf(`
named:
  listen: %s
  hash: murmur
  hash_tag: "{}"
  distribution: ketama
  servers:
   - %s:1 one
   - %s:3 two
   - %s:2 three
plain:
  listen: %s
  servers:
   - %s:1
   - %s:1
   - %s:1
   - %s:2
odd name!:
  listen: %s
  hash: crc16
  distribution: modula
  servers:
   - %s:1
   - %s:2
`, listens[0], s[0], s[1], s[2], listens[1], s[1], s[2], s[3], s[4], listens[2], s[4], s[3]))
	startNutcracker(t, file, listens...)
	e := &example{t: t}
	key := func(pool, i int) string { return fmt.Sprintf("%d:{%d}:%d", pool, i/2, i) }
	for pool, addr := range listens {
		c := e.dial(addr)
		for i := range 300 {
			c.set(key(pool, i), key(pool, i))
		}
	}
	status, text, errs := command("import", file, "--sample=1000")
	if status != 0 || strings.Count(errs, ": 1000 of 1000 keys stay where they are") != 3 {
		t.Fatalf("status %d: %s", status, errs)
	}
	e.start(text)
	byAddress := make(map[string]*exampleClient)
	for i, l := range e.server.cfg.Listen {
		byAddress[l.Address] = e.clients[i]
	}
	for pool, addr := range listens {
		for i := range 300 {
			k := key(pool, i)
			byAddress[addr].is("get "+k, k+"="+k)
		}
	}
}
