package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// keyring is a file of gossip keys, each made of one letter.
type keyring struct {
	t    *testing.T
	path string
}

func newKeyring(t *testing.T, keys string) keyring {
	t.Helper()
	k := keyring{t, filepath.Join(t.TempDir(), "keys")}
	k.write(keys)
	return k
}

func (k keyring) write(keys string) {
	k.t.Helper()
	var text string
	for _, c := range keys {
		text += base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(c), 32))) + "\n"
	}
	if err := os.WriteFile(k.path, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// startAgent starts an agent that announces a server.
func startAgent(t *testing.T, name, addr, join string, keys keyring) *router {
	t.Helper()
	return startCommand(t, raceBinary, "agent", "--announce", name+"="+addr, "--join", join, "--name", "agent-"+name,
		"--gossip", "127.0.0.1:0", "--keyring", keys.path)
}

// A router that knows no server waits for an agent to announce one, follows those that come
// later, and takes over other keys while it runs; without the key an agent is not heard.
func TestAgentsAnnounceServers(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 3)
	gossip := memcachedtest.Reserve(t)
	keys := newKeyring(t, "a")
	stranger := startAgent(t, "s2", servers[2].Addr(), gossip, newKeyring(t, "z"))
	startAgent(t, "s0", servers[0].Addr(), gossip, keys)
	r := startWatching(t, fmt.Sprintf("pool: {announced: true}\ngossip: {bind: %q, keyring: %q}\n", gossip, keys.path))
	c := connect(t, r.addr)
	c.mustSet(t, "k", "v")
	connect(t, servers[0].Addr()).mustGet(t, "k", "v")

	keys.write("ab")
	waitFor(t, "router and agent to take the new keys", func() error {
		return logged(r, `msg="gossip keys changed" keys=2`)
	})
	keys.write("ba")
	startAgent(t, "s1", servers[1].Addr(), gossip, newKeyring(t, "b"))
	r.waitStatus("s1", "in")
	if m, err := r.members(); err != nil || strings.Contains(fmt.Sprintf("%+v", m), "s2") {
		t.Errorf("an agent without the key was heard: %+v, %v", m, err)
	}
	stranger.stop()
}

func logged(r *router, line string) error {
	if !strings.Contains(r.log.String(), line) {
		return fmt.Errorf("the log does not say %q", line)
	}
	return nil
}

// Clients that ask for the nodes are told of the routers that are there, and no more of one
// that drains.
func TestRoutersAreDiscovered(t *testing.T) {
	t.Parallel()
	servers := memcachedtest.StartN(t, 1)
	gossip := []string{memcachedtest.Reserve(t), memcachedtest.Reserve(t)}
	clients := []string{memcachedtest.Reserve(t), memcachedtest.Reserve(t)}
	var routers []*router
	for i := range 2 {
		file := filepath.Join(t.TempDir(), "router.yml")
		text := pool(servers) + fmt.Sprintf("name: r%d\nlisten: [%q]\nadvertise_self: %q\ndrain_delay: %dm\ngossip: {bind: %q, join: [%q]}\n",
			i, clients[i], clients[i], i, gossip[i], gossip[0]) + quick
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r := startServe(t, raceBinary, "--config", file)
		r.waitLog(listeningTCP)
		routers = append(routers, r)
	}
	told := func(want ...int) func() error {
		return func() error {
			c := connect(t, clients[0])
			reply, err := c.do("config get cluster\r\n")
			var nodes string
			for range 2 { // the version, then the nodes
				if err == nil {
					nodes, err = c.r.ReadString('\n')
				}
			}
			var all []string
			for _, i := range want {
				host, port, _ := strings.Cut(clients[i], ":")
				all = append(all, host+"|"+host+"|"+port)
			}
			if err == nil && nodes != strings.Join(all, " ")+"\n" {
				err = fmt.Errorf("%q, %q, want %q", reply, nodes, all)
			}
			return err
		}
	}
	waitFor(t, "clients to be told of both routers", told(0, 1))
	routers[1].term()
	waitFor(t, "clients to be told of the other one no more", told(0))
	routers[1].cmd.Process.Signal(os.Interrupt) // do not wait for the whole delay
}
