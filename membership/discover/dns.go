package discover

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// DNS finds servers by their names in DNS. The zero value of Resolver means the system's.
//
// With a Port it asks for the addresses of Name, A and AAAA, and a server's name is its
// address: placement moves when an address does. Without one it asks for SRV records, and
// a server's name is the record's target and port: it keeps its keys wherever its address
// goes, which is right for the pods of a Kubernetes headless service.
type DNS struct {
	Name string
	// Port is the port of servers that are found by address; 0 asks for SRV records.
	Port uint16
	// Resolver is the host:port of a DNS server to ask instead of the system's.
	Resolver string
}

// Look asks.
func (d DNS) Look(ctx context.Context) (Answer, error) {
	t := &ttl{server: d.Resolver}
	r := &net.Resolver{PreferGo: true, StrictErrors: true, Dial: t.dial}
	look := d.services
	if d.Port != 0 {
		look = d.addresses
	}
	servers, err := look(ctx, r)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot resolve %s: %w", d.Name, err)
	}
	return Answer{Servers: servers, TTL: t.lowest()}, nil
}

func (d DNS) addresses(ctx context.Context, r *net.Resolver) ([]Server, error) {
	ips, err := r.LookupNetIP(ctx, "ip", d.Name)
	if err != nil {
		return nil, err
	}
	var all []Server
	for _, ip := range ips {
		addr := hostPort(ip.Unmap().String(), d.Port)
		all = append(all, Server{addr, addr, 1})
	}
	return sorted(all), nil
}

func (d DNS) services(ctx context.Context, r *net.Resolver) ([]Server, error) {
	_, records, err := r.LookupSRV(ctx, "", "", d.Name)
	if err != nil {
		return nil, err
	}
	var all []Server
	for _, s := range records {
		target := strings.TrimSuffix(s.Target, ".")
		ip, err := first(ctx, r, s.Target)
		if err != nil {
			return nil, err
		}
		all = append(all, Server{hostPort(target, s.Port), hostPort(ip, s.Port), max(1, int(s.Weight))})
	}
	return sorted(all), nil
}

// first returns the lowest address of a host, so that the answer does not change with the
// order in which a server gives them.
func first(ctx context.Context, r *net.Resolver, host string) (string, error) {
	ips, err := r.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", err
	}
	for i := range ips {
		ips[i] = ips[i].Unmap()
	}
	slices.SortFunc(ips, func(a, b netip.Addr) int { return a.Compare(b) })
	return ips[0].String(), nil
}
