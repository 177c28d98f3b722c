package e2e

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// groups is the first of the groups that the routers of a world run in, so that the packet filter can tell them apart.
const groups = 47100

// canCut tells whether routers can be cut off from each other: only root may filter packets.
func canCut() bool {
	_, err := exec.LookPath("iptables")
	return err == nil && os.Getuid() == 0
}

// inGroup has a command run in the group of router n.
func inGroup(cmd *exec.Cmd, n int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Gid: uint32(groups + n)}}
}

// cutOff keeps a router from the others until it hears none of them.
func (w *world) cutOff(n int) {
	w.tb.Helper()
	heal := w.isolate(n)
	defer heal()
	waitFor(w.tb, "the router to hear nobody", func() error {
		_, text, err := w.routers[n].http("/api/v1/routers")
		if err == nil && !strings.Contains(text, `"present":1,`) {
			err = errors.New(text)
		}
		return err
	})
}

// isolate drops all that a router and the others have to say to each other, until heal is called.
func (w *world) isolate(n int) (heal func()) {
	w.tb.Helper()
	var rules [][]string
	for m := range w.routers {
		if m != n {
			rules = append(rules, w.drops(n, m)...)
			rules = append(rules, w.drops(m, n)...)
		}
	}
	for _, rule := range rules {
		w.filter("-I", rule)
		defer w.tb.Cleanup(func() { exec.Command("iptables", append([]string{"-w", "-D", "OUTPUT"}, rule...)...).Run() }) // should the test end before
	}
	return func() {
		for _, rule := range rules {
			w.filter("-D", rule)
		}
	}
}

// drops are the rules for what one router sends to another.
func (w *world) drops(from, to int) (rules [][]string) {
	w.tb.Helper()
	_, port, err := net.SplitHostPort(w.gossip[to])
	if err != nil {
		w.tb.Fatal(err)
	}
	for _, protocol := range []string{"tcp", "udp"} {
		rules = append(rules, []string{"-o", "lo", "-p", protocol, "--dport", port,
			"-m", "owner", "--gid-owner", strconv.Itoa(groups + from), "-j", "DROP"})
	}
	return rules
}

func (w *world) filter(how string, rule []string) {
	w.tb.Helper()
	args := append([]string{"-w", how, "OUTPUT"}, rule...)
	if out, err := exec.Command("iptables", args...).CombinedOutput(); err != nil {
		w.tb.Fatalf("cannot filter packets by %q: %v: %s", args, err, out)
	}
}
