// Package netlab builds small networks for tests out of Linux network namespaces: hosts
// with an interface each, joined by a bridge, between which packets can be lost or cables
// pulled out. What runs in them are real processes with real sockets, so a partition here
// is one, with all that kernels do about it.
//
// The namespaces, bridge included, belong to one test. Nothing of the machine's own
// network is touched, and nothing in a lab reaches it.
package netlab

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"cacherouter/internal/memcachedtest"
)

// Lab is a network. Its methods report failures on the test that it was made for, and are
// for that test's goroutine alone.
type Lab struct {
	tb     testing.TB
	prefix string // of its namespaces' names
	hosts  []*Host
}

// prefix begins the names of all labs' namespaces; the process id and a number follow.
const prefix = "netlab"

// labs numbers the labs of this process.
var labs atomic.Int64

// New makes a network without hosts, which ends with the test. Where there are no rights
// or programs to make one, the test is skipped and says what is missing; with CI set in the
// environment it fails.
func New(tb testing.TB) *Lab {
	tb.Helper()
	if os.Geteuid() != 0 {
		memcachedtest.Missing(tb, "making network namespaces takes root")
	}
	memcachedtest.Need(tb, "ip")
	memcachedtest.Need(tb, "iptables-restore")
	sweep()
	l := &Lab{tb: tb, prefix: fmt.Sprintf("%s-%d-%d-", prefix, os.Getpid(), labs.Add(1))}
	if out, err := l.add("switch"); err != nil {
		memcachedtest.Missing(tb, fmt.Sprintf("this system makes no network namespaces: %v: %s", err, out))
	}
	l.ip("-n", l.prefix+"switch", "link", "add", "bridge", "type", "bridge")
	l.ip("-n", l.prefix+"switch", "link", "set", "bridge", "up")
	return l
}

// add makes a namespace that ends with the test.
func (l *Lab) add(name string) ([]byte, error) {
	out, err := exec.Command("ip", "netns", "add", l.prefix+name).CombinedOutput()
	if err == nil {
		l.tb.Cleanup(func() { l.ip("netns", "del", l.prefix+name) })
	}
	return out, err
}

// ip runs the command of that name.
func (l *Lab) ip(args ...string) {
	l.tb.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		l.tb.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// sweep removes what test processes left behind that were killed.
func sweep() {
	names, err := os.ReadDir("/run/netns")
	if err != nil {
		return // there has been none yet
	}
	for _, n := range names {
		part := strings.Split(n.Name(), "-")
		if len(part) < 3 || part[0] != prefix {
			continue
		}
		if pid, err := strconv.Atoi(part[1]); err != nil || alive(pid) {
			continue
		}
		exec.Command("ip", "netns", "del", n.Name()).Run() // somebody else may just do so
	}
}

func alive(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// Partition lets hosts of different groups no longer hear each other. Hosts in none of
// the groups hear all. Losses and cuts between the hosts of a group stay.
func (l *Lab) Partition(groups ...[]*Host) {
	l.tb.Helper()
	for i, group := range groups {
		for _, h := range group {
			for j, other := range groups {
				for _, from := range other {
					if i != j {
						h.loss[from] = 1
					}
				}
			}
			h.apply()
		}
	}
}

// Cut lets two hosts no longer hear each other.
func (l *Lab) Cut(a, b *Host) {
	l.tb.Helper()
	l.Partition([]*Host{a}, []*Host{b})
}

// Lose loses a share of all packets between some hosts, at random.
func (l *Lab) Lose(share float64, hosts ...*Host) {
	l.tb.Helper()
	for _, h := range hosts {
		for _, from := range hosts {
			if from != h {
				h.loss[from] = share
			}
		}
		h.apply()
	}
}

// Heal ends partitions, cuts and losses. Interfaces that are down stay so.
func (l *Lab) Heal() {
	l.tb.Helper()
	for _, h := range l.hosts {
		if len(h.loss) > 0 {
			clear(h.loss)
			h.apply()
		}
	}
}
