//go:build linux

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// Partition is a cut between routers, made of rules of the kernel's packet filter.
type Partition struct{ rules [][]string }

// Cut keeps the routers before the given place from talking to those from there on: all packets of
// theirs for the others' gossip are dropped. It needs root, as processes are told apart by their
// users. The caller must Heal it.
func (f *Fleet) Cut(ctx context.Context, place int) (*Partition, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("cannot cut routers off: only root may drop packets")
	}
	p := &Partition{}
	for i, from := range f.Routers {
		for j, to := range f.Routers {
			if (i < place) == (j < place) {
				continue
			}
			for _, protocol := range []string{"tcp", "udp"} {
				if err := p.drop(ctx, from, to.host, protocol, gossipPort); err != nil {
					return nil, errors.Join(err, p.Heal())
				}
			}
		}
	}
	return p, nil
}

// CutServer keeps one router from reaching one server, as a broken link would: its packets are
// dropped. Like Cut it needs root, and the caller must Heal it.
func (f *Fleet) CutServer(ctx context.Context, r *Router, s *Server) (*Partition, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("cannot cut a router off: only root may drop packets")
	}
	p := &Partition{}
	return p, p.drop(ctx, r, s.host, "tcp", serverPort)
}

func (p *Partition) drop(ctx context.Context, from *Router, to, protocol string, port int) error {
	rule := []string{"OUTPUT", "-o", "lo", "-d", to, "-p", protocol, "--dport", strconv.Itoa(port),
		"-m", "owner", "--uid-owner", strconv.Itoa(int(from.user)), "-j", "DROP"}
	if err := filter(ctx, "-I", rule); err != nil {
		return err
	}
	p.rules = append(p.rules, rule)
	return nil
}

// Heal takes the rules back. It may be called again.
func (p *Partition) Heal() (err error) {
	for _, rule := range p.rules {
		err = errors.Join(err, filter(context.Background(), "-D", rule))
	}
	p.rules = nil
	return err
}

func filter(ctx context.Context, how string, rule []string) error {
	text, err := exec.CommandContext(ctx, "iptables", append([]string{"-w", how}, rule...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot change the packet filter: %w: %s", err, text)
	}
	return nil
}
