package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// quick makes membership decide sooner than its defaults do.
const quick = `
membership:
  handover: 5s
  health: {dead: 1s, interval: 300ms, fast: 150ms}
  view: {activation: 1s, commit: 300ms, steady: 1s}
  damping: {hold: 1s}
  lists: {every: 200ms}
`

// members is what /api/v1/members says.
type members struct {
	Version uint64
	Digest  string
	Agreed  bool
	Servers []struct {
		Name, Status, Health string
		MayStop              bool `json:"may_stop"`
	}
}

// named returns servers as name=address.
func named(servers []*memcachedtest.Server) (all []string) {
	for i, s := range servers {
		all = append(all, fmt.Sprintf("s%d=%s", i, s.Addr()))
	}
	return all
}

// startWatching starts a router with a configuration of its own.
func startWatching(t *testing.T, text string, args ...string) *router {
	t.Helper()
	file := filepath.Join(t.TempDir(), "router.yml")
	if err := os.WriteFile(file, []byte(text+quick), 0o644); err != nil {
		t.Fatal(err)
	}
	return startServe(t, raceBinary, append([]string{"--listen", "127.0.0.1:0", "--config", file}, args...)...)
}

// pool is the section of a configuration that lists servers.
func pool(servers []*memcachedtest.Server, more ...string) string {
	return "pool:\n  servers: [" + strings.Join(named(servers), ", ") + "]\n" + strings.Join(more, "\n") + "\n"
}

func (r *router) http(path string) (int, string, error) {
	resp, err := http.Get("http://" + r.admin + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func (r *router) members() (m members, err error) {
	_, text, err := r.http("/api/v1/members")
	if err == nil {
		err = json.Unmarshal([]byte(text), &m)
	}
	return m, err
}

// waitStatus waits until a router says that a server has a status.
func (r *router) waitStatus(server, status string) {
	r.tb.Helper()
	waitFor(r.tb, server+" to be "+status, func() error {
		m, err := r.members()
		for _, s := range m.Servers {
			if s.Name == server && s.Status == status {
				return nil
			}
		}
		return fmt.Errorf("%+v, %w", m, err)
	})
}

// waitHTTP waits until a page has a status.
func (r *router) waitHTTP(path string, status int) {
	r.tb.Helper()
	waitFor(r.tb, fmt.Sprintf("%s to give %d", path, status), func() error {
		got, text, err := r.http(path)
		if got == status {
			return nil
		}
		return fmt.Errorf("%d %q, %w", got, text, err)
	})
}

// versions writes keys over and over and reads each back: an old value is never right.
type versions struct {
	t    *testing.T
	c    *client
	last [60]int
	n    int
	down int // requests that failed in good order
}

// round writes and reads every key once. A write that failed may have been done or not, so
// its key is not judged before it is written again.
func (v *versions) round() {
	v.t.Helper()
	v.n++
	for i := range v.last {
		key := fmt.Sprintf("key%d", i)
		switch err := v.c.set(key, fmt.Sprint(v.n)); {
		case err == nil:
			v.last[i] = v.n
		case failed(err):
			v.down++
			v.last[i] = 0
			continue
		default:
			v.t.Fatal(err)
		}
		switch got, err := v.c.get(key); {
		case failed(err):
			v.down++
		case err != nil:
			v.t.Fatal(err)
		case got[key] != "" && got[key] != fmt.Sprint(v.n):
			v.t.Fatalf("%s is %s after %d was written", key, got[key], v.n)
		}
	}
}

// untilWell does rounds until none of a round's requests has failed.
func (v *versions) untilWell() {
	v.t.Helper()
	waitFor(v.t, "all requests to be served", func() error {
		v.down = 0
		if v.round(); v.down > 0 {
			return fmt.Errorf("%d of %d requests failed", v.down, 2*len(v.last))
		}
		return nil
	})
}

// during does rounds until something has happened.
func (v *versions) during(what string, happened func() error) {
	v.t.Helper()
	waitFor(v.t, what, func() error { v.round(); return happened() })
}

func (r *router) has(server, status string) func() error {
	return func() error {
		m, err := r.members()
		if err == nil && !strings.Contains(fmt.Sprintf("%+v", m.Servers), "{Name:"+server+" Status:"+status+" ") {
			err = fmt.Errorf("%+v", m)
		}
		return err
	}
}

func TestKilledServerFailsOverAndReturns(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 3)
	r := startWatching(t, pool(servers))
	v := &versions{t: t, c: connect(t, r.addr)}
	v.round()
	if v.down > 0 {
		t.Fatalf("%d requests failed when all was well", v.down)
	}
	servers[1].Stop()
	v.untilWell()
	v.during("s1 to be out", r.has("s1", "out"))
	servers[1].Restart()
	v.during("s1 to return", r.has("s1", "in"))
	v.untilWell()
	if n := servers[1].Stat("cmd_set"); n == 0 {
		t.Error("the server that returned has got nothing")
	}
	for _, line := range []string{`server=s1 from=in to=away`, `server=s1 from=away to=out`, `msg="placement changed"`, `server=s1 from=out to=in`} {
		if !strings.Contains(r.log.String(), line) {
			t.Errorf("the log does not say %q", line)
		}
	}
}

// A server that stands still keeps what it had, and must not show it again.
func TestStoppedServerReturnsWithoutOldValues(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 3)
	r := startWatching(t, pool(servers, "  timeout: 300ms", "  connect_timeout: 300ms"))
	v := &versions{t: t, c: connect(t, r.addr)}
	v.round()
	servers[0].Pause()
	v.untilWell()
	servers[0].Resume()
	v.during("s0 to return", r.has("s0", "in"))
	v.untilWell()
}

func TestReadyNeedsAUsableServer(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 2)
	r := startWatching(t, pool(servers))
	r.waitHTTP("/readyz", 200)
	servers[0].Stop()
	r.waitStatus("s0", "out")
	r.waitHTTP("/readyz", 200)
	servers[1].Stop()
	r.waitHTTP("/readyz", 503)
	servers[1].Restart()
	r.waitHTTP("/readyz", 200)
}

// startFleet starts routers that gossip with each other.
func startFleet(t *testing.T, n int, text string) (routers []*router) {
	t.Helper()
	var addrs []string
	for range n {
		addrs = append(addrs, memcachedtest.Reserve(t))
	}
	for i := range n {
		routers = append(routers, startWatching(t, text, "--name", fmt.Sprint("r", i), "--gossip", addrs[i], "--join", strings.Join(addrs, ",")))
	}
	for _, r := range routers {
		waitFor(t, "the routers to hear each other", func() error {
			_, text, err := r.http("/api/v1/routers")
			if err == nil && !strings.Contains(text, fmt.Sprintf(`"known":%d,"present":%d,"voters":%d,`, n, n, n)) {
				err = fmt.Errorf("%s", text)
			}
			return err
		})
	}
	return routers
}

func TestRoutersAgree(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 3)
	routers := startFleet(t, 3, pool(servers))
	servers[2].Stop()
	for _, r := range routers {
		r.waitStatus("s2", "out")
	}
	first, err := routers[0].members()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routers[1:] {
		m, err := r.members()
		if err != nil || m.Version != first.Version || m.Digest != first.Digest {
			t.Errorf("version %d, digest %s; the first router has %d, %s: %v", m.Version, m.Digest, first.Version, first.Digest, err)
		}
	}
	// A router that says good-bye is not waited for.
	routers[2].stop()
	waitFor(t, "the others to do without it", func() error {
		_, text, err := routers[0].http("/api/v1/routers")
		if err == nil && !strings.Contains(text, `"known":2,"present":2,"voters":2,"frozen":false`) {
			err = fmt.Errorf("%s", text)
		}
		return err
	})
	servers[2].Restart()
	routers[0].waitStatus("s2", "in")
	routers[1].waitStatus("s2", "in")
}

// command runs the program to its end.
func (r *router) command(args ...string) (string, error) {
	r.tb.Helper()
	path, err := raceBinary()
	if err != nil {
		r.tb.Fatal(err)
	}
	out, err := exec.CommandContext(r.tb.Context(), path, args...).CombinedOutput()
	return string(out), err
}

func TestDrainedServerCanBeStopped(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 3)
	routers := startFleet(t, 2, pool(servers))
	r := routers[0]
	c := connect(t, routers[1].addr)
	for i := range 100 {
		c.mustSet(t, fmt.Sprint("k", i), fmt.Sprint(i))
	}
	if out, err := r.command("drain", "s1", "--admin", r.admin); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, r := range routers {
		r.waitStatus("s1", "draining")
	}
	for i := range 100 { // those of s1 are brought over
		c.mustGet(t, fmt.Sprint("k", i), fmt.Sprint(i))
	}
	if out, err := r.command("drain", "s1", "--admin", r.admin, "--wait"); err != nil || !strings.Contains(out, "s1 may be stopped") {
		t.Fatalf("drain says %q, %v", out, err)
	}
	servers[1].Stop()
	for i := range 100 {
		c.mustGet(t, fmt.Sprint("k", i), fmt.Sprint(i))
		c.mustSet(t, fmt.Sprint("k", i), "new")
	}
	servers[1].Restart()
	if out, err := r.command("drain", "s1", "--admin", r.admin, "--undo"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, r := range routers {
		r.waitStatus("s1", "in")
	}
	for _, bad := range [][]string{{"nobody"}, {"s1", "--undo"}} {
		if out, err := r.command(append([]string{"drain", "--admin", r.admin}, bad...)...); err == nil {
			t.Errorf("drain %v says %q", bad, out)
		}
	}
}

// A server that is added begins with what the others held.
func TestAddedServerIsWarm(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 3)
	list := filepath.Join(t.TempDir(), "servers")
	write := func(n int) {
		t.Helper()
		if err := os.WriteFile(list, []byte(strings.Join(named(servers)[:n], "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(2)
	r := startWatching(t, "pool:\n  file: "+list+"\n")
	c := connect(t, r.addr)
	for i := range 200 {
		c.mustSet(t, fmt.Sprint("k", i), fmt.Sprint(i))
	}
	write(3)
	r.waitStatus("s2", "in")
	r.waitLog(`msg="placement changed" servers=(3)`)
	for i := range 200 {
		c.mustGet(t, fmt.Sprint("k", i), fmt.Sprint(i))
	}
	waitFor(t, "the new server to hold what it has to", func() error {
		if n := servers[2].Stat("curr_items"); n < 30 {
			return fmt.Errorf("%d items", n)
		}
		return nil
	})
}
