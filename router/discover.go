package router

import (
	"fmt"
	"net"
	"strings"

	"cacherouter/memproto"
)

// discoveryKey is the key under which clients of old releases ask for the nodes.
const discoveryKey = "AmazonElastiCache:cluster"

// discovers answers a client that asks which nodes the cluster has, as ElastiCache does,
// with the routers' own addresses: so it stays with them instead of going around them.
func (s *session) discovers(r *memproto.Request) bool {
	switch {
	case r.Verb == memproto.ConfigGet && configGetCluster(r.Args()):
		nodes := s.nodes()
		s.say(fmt.Sprintf("CONFIG cluster 0 %d\r\n%s\r\nEND", len(nodes), nodes))
	case r.Verb == memproto.Get && r.NumKeys == 1 && string(r.Key) == discoveryKey:
		nodes := s.nodes()
		s.say(fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND", discoveryKey, len(nodes), nodes))
	default:
		return false
	}
	return true
}

func configGetCluster(args []byte) bool {
	get, rest := memproto.NextWord(args)
	cluster, _ := memproto.NextWord(rest)
	return string(get) == "get" && string(cluster) == "cluster"
}

// nodes lists the addresses as ElastiCache does: a version, and host|ip|port of each
// node.
func (s *session) nodes() string {
	version, nodes := s.front.r.cfg.Nodes(s.conn.Peer())
	var all []string
	for _, a := range nodes {
		host, port, err := net.SplitHostPort(a)
		if err != nil {
			continue
		}
		ip := ""
		if net.ParseIP(host) != nil {
			ip = host
		}
		all = append(all, host+"|"+ip+"|"+port)
	}
	return fmt.Sprintf("%d\n%s\n", version, strings.Join(all, " "))
}
