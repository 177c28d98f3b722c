package netlab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Host is a namespace with one interface. Command and Dial may be called by any goroutine,
// all else by the test's only.
type Host struct {
	lab  *Lab
	name string
	id   int               // the last byte of its address
	loss map[*Host]float64 // the share that it loses of what comes from others
}

// maxHosts is how many hosts a lab can have.
const maxHosts = 250

// Host makes a host, whose name is to be short, without dashes, and unique in the lab.
func (l *Lab) Host(name string) *Host {
	l.tb.Helper()
	h := &Host{lab: l, name: name, id: len(l.hosts) + 1, loss: map[*Host]float64{}}
	if h.id > maxHosts {
		l.tb.Fatalf("a lab has %d hosts at most", maxHosts)
	}
	if out, err := l.add(name); err != nil {
		l.tb.Fatalf("cannot make a namespace: %v: %s", err, out)
	}
	l.hosts = append(l.hosts, h)
	port := "port" + strconv.Itoa(h.id)
	l.ip("-n", l.prefix+"switch", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", h.space())
	l.ip("-n", l.prefix+"switch", "link", "set", port, "master", "bridge", "up")
	l.ip("-n", h.space(), "addr", "add", h.IP()+"/24", "dev", "eth0")
	l.ip("-n", h.space(), "link", "set", "lo", "up")
	h.Plug()
	return h
}

// Hosts makes hosts of a name and a number each.
func (l *Lab) Hosts(name string, n int) []*Host {
	l.tb.Helper()
	all := make([]*Host, n)
	for i := range all {
		all[i] = l.Host(name + strconv.Itoa(i))
	}
	return all
}

// space is the name of its namespace.
func (h *Host) space() string { return h.lab.prefix + h.name }

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// IP returns the host's address.
func (h *Host) IP() string { return "10.77.0." + strconv.Itoa(h.id) }

// Command returns a command that runs on the host. Its process id is that of the program.
func (h *Host) Command(program string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", h.space(), program}, args...)...)
}

// Unplug takes the host's interface down: what is sent to it is lost without an answer.
func (h *Host) Unplug() {
	h.lab.tb.Helper()
	h.lab.ip("-n", h.space(), "link", "set", "eth0", "down")
}

// Plug takes it up again.
func (h *Host) Plug() {
	h.lab.tb.Helper()
	h.lab.ip("-n", h.space(), "link", "set", "eth0", "up")
}

// apply puts what the host loses into force, all at once.
func (h *Host) apply() {
	h.lab.tb.Helper()
	var rules strings.Builder
	rules.WriteString("*filter\n:INPUT ACCEPT [0:0]\n")
	for _, from := range slices.SortedFunc(maps.Keys(h.loss), func(a, b *Host) int { return cmp.Compare(a.id, b.id) }) {
		fmt.Fprintf(&rules, "-A INPUT -s %s -m statistic --mode random --probability %.4f -j DROP\n", from.IP(), h.loss[from])
	}
	rules.WriteString("COMMIT\n")
	cmd := h.Command("iptables-restore")
	cmd.Stdin = strings.NewReader(rules.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		h.lab.tb.Fatalf("cannot set the rules of %s: %v: %s", h.name, err, out)
	}
}

// Dial connects from the host to an address, which is to hold an IP address, not a name.
func (h *Host) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	inside := h.within(func() {
		var d net.Dialer
		c, err = d.DialContext(ctx, network, address)
	})
	if inside != nil {
		return nil, fmt.Errorf("cannot enter %s: %w", h.name, inside)
	}
	return c, err
}

// DialTimeout is Dial over TCP with a time limit.
func (h *Host) DialTimeout(address string, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return h.Dial(ctx, "tcp", address)
}

// within runs f on a thread that is in the host's namespace, where the sockets that f
// makes then belong. f must not make them on other goroutines.
func (h *Host) within(f func()) error {
	there, err := os.Open("/run/netns/" + h.space())
	if err != nil {
		return err
	}
	defer there.Close()
	runtime.LockOSThread()
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer here.Close()
	if err := unix.Setns(int(there.Fd()), syscall.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	f()
	if err := unix.Setns(int(here.Fd()), syscall.CLONE_NEWNET); err != nil {
		return err // the thread stays locked, so that it ends with its goroutine
	}
	runtime.UnlockOSThread()
	return nil
}
