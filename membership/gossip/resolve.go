package gossip

import (
	"context"
	"net"
	"slices"
	"time"
)

// resolve returns the addresses behind a host:port. A name with many addresses, as of a
// headless service, would otherwise make us greet them all.
func resolve(ctx context.Context, hostport string) []string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil
	}
	if net.ParseIP(host) != nil {
		return []string{hostport}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil
	}
	slices.Sort(ips)
	var all []string
	for _, ip := range ips {
		all = append(all, net.JoinHostPort(ip, port))
	}
	return all
}
