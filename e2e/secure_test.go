package e2e

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/certtest"
	"cacherouter/internal/memcachedtest"
)

// file writes a file into a folder of the test.
func file(tb testing.TB, name, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// startWith starts a router with a configuration text, in which %s stands for nothing:
// the servers are appended.
func startWith(tb testing.TB, backends []string, text string) *router {
	tb.Helper()
	text += "\npool:\n  servers: [" + strings.Join(backends, ", ") + "]\n"
	r := startServe(tb, raceBinary, "--config", file(tb, "cacherouter.yaml", text))
	r.addr = r.waitLog(`msg=listening .*network=tcp addr=(\S+)`)
	return r
}

// say sends a request on a connection and reads as many bytes as are wanted.
func say(tb testing.TB, nc io.ReadWriter, request, want string) {
	tb.Helper()
	if _, err := io.WriteString(nc, request); err != nil {
		tb.Fatalf("cannot send %q: %v", request, err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(nc, got); err != nil || string(got) != want {
		tb.Fatalf("%q: got %q, %v; want %q", request, got[:n], err, want)
	}
}

// dialPlain opens a connection with a deadline.
func dialPlain(tb testing.TB, addr string) net.Conn {
	tb.Helper()
	return connect(tb, addr).conn
}

func TestTLSForClients(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	ca, stranger := certtest.New(t), certtest.New(t)
	cert, key, _ := ca.Issue("router")
	r := startWith(t, memcachedtest.Addrs(servers), fmt.Sprintf(`
listen:
  - address: 127.0.0.1:0
    tls: {cert: %s, key: %s, client_ca: %s}`, cert, key, ca.File))

	nc, err := tls.Dial("tcp", r.addr, clientTLS(t, ca, ca))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	say(t, nc, "set a 0 0 1\r\nA\r\nset b 0 0 1\r\nB\r\nget a b\r\n", "STORED\r\nSTORED\r\nVALUE a 0 1\r\nA\r\nVALUE b 0 1\r\nB\r\nEND\r\n")
	big := strings.Repeat("x", 700_000)
	say(t, nc, "set big 0 0 700000\r\n"+big+"\r\nget big\r\n", "STORED\r\nVALUE big 0 700000\r\n"+big+"\r\nEND\r\n")
	say(t, nc, "quit\r\n", "")
	if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after quit: %v", err)
	}

	refused(t, r.addr, clientTLS(t, ca, stranger)) // a certificate of somebody else's
	refused(t, r.addr, clientTLS(t, ca, nil))      // no certificate
	plain := dialPlain(t, r.addr)
	io.WriteString(plain, "version\r\n")
	if got, _ := io.ReadAll(plain); strings.Contains(string(got), "VERSION") {
		t.Errorf("plain text on a TLS port was answered: %q", got)
	}
	waitFor(t, "handshake errors to be counted", func() error { return metricAtLeast(r, "cacherouter_client_handshake_errors_total", 3) })
	again, err := tls.Dial("tcp", r.addr, clientTLS(t, ca, ca))
	if err != nil {
		t.Fatalf("after the refused ones: %v", err)
	}
	again.Close()
}

// clientTLS trusts one authority and shows a certificate of another, or none.
func clientTLS(tb testing.TB, trusts, shows *certtest.Authority) *tls.Config {
	tb.Helper()
	c := &tls.Config{ServerName: "router", RootCAs: x509.NewCertPool()}
	pem, err := os.ReadFile(trusts.File)
	if err != nil {
		tb.Fatal(err)
	}
	c.RootCAs.AppendCertsFromPEM(pem)
	if shows != nil {
		certFile, keyFile, _ := shows.Issue("client")
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			tb.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// refused wants no answer; in TLS 1.3 a client learns of the refusal when it reads.
func refused(tb testing.TB, addr string, c *tls.Config) {
	tb.Helper()
	nc, err := tls.Dial("tcp", addr, c)
	if err != nil {
		return
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	io.WriteString(nc, "version\r\n")
	if n, err := nc.Read(make([]byte, 16)); err == nil {
		tb.Errorf("was answered with %d bytes", n)
	}
}

// metricAtLeast returns an error unless the router shows at least so much.
func metricAtLeast(r *router, name string, least float64) error {
	nc, err := net.DialTimeout("tcp", r.admin, patience)
	if err != nil {
		return err
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(nc, "GET /metrics HTTP/1.0\r\n\r\n")
	lines := bufio.NewScanner(nc)
	for lines.Scan() {
		var value float64
		if n, _ := fmt.Sscanf(lines.Text(), name+" %g", &value); n == 1 && value >= least {
			return nil
		}
	}
	return fmt.Errorf("%s is not yet %g", name, least)
}

func TestTLSToServers(t *testing.T) {
	ca, stranger := certtest.New(t), certtest.New(t)
	cert, key, _ := ca.Issue("cache")
	opts := fmt.Sprintf("ssl_chain_cert=%s,ssl_key=%s", cert, key)
	secure := memcachedtest.Start(t, "-Z", "-o", opts)
	f := func(authority *certtest.Authority, name, want string) {
		t.Helper()
		r := startUnwatched(t, []string{secure.Addr()}, fmt.Sprintf("tls: {ca: %s, server_name: %s}", authority.File, name))
		nc := dialPlain(t, r.addr)
		say(t, nc, "set a 0 0 1\r\nA\r\n", want)
	}
	f(ca, "cache", "STORED\r\n")
	f(ca, "elsewhere.example", "SERVER_ERROR backend connection refused\r\n")
	f(stranger, "cache", "SERVER_ERROR backend connection refused\r\n")
}

func TestPasswordsOfClients(t *testing.T) {
	servers := memcachedtest.StartN(t, 2)
	passwords := file(t, "passwords", "ann:secret\n")
	direct := memcachedtest.Start(t, "-Y", passwords)
	r := startWith(t, memcachedtest.Addrs(servers), "listen:\n  - {address: 127.0.0.1:0, passwords: "+passwords+"}")
	for _, addr := range []string{direct.Addr(), r.addr} {
		nc := dialPlain(t, addr)
		const no = "CLIENT_ERROR unauthenticated\r\n"
		say(t, nc, "get a\r\n", no)
		say(t, nc, "version\r\n", no)
		say(t, nc, "set a 0 0\r\n", no)
		say(t, nc, "set _ _ _ 9\r\nann wrong\r\n", "CLIENT_ERROR authentication failure\r\n")
		say(t, nc, "set a 0 0 3\r\nann\r\n", "CLIENT_ERROR bad authentication token format\r\n")
		say(t, nc, "set a 0 0 10\r\nann secretxx", "CLIENT_ERROR bad command line termination\r\n")
		say(t, nc, "set _ _ _ 10\r\nann secret\r\nset a 0 0 1\r\nA\r\nget a\r\n", "STORED\r\nSTORED\r\nVALUE a 0 1\r\nA\r\nEND\r\n")
	}

	nc := dialPlain(t, r.addr)
	for range 3 {
		say(t, nc, "set a 0 0 7\r\nann bad\r\n", "CLIENT_ERROR authentication failure\r\n")
	}
	if got, err := io.ReadAll(nc); len(got) != 0 || err != nil {
		t.Errorf("after three failures: %q, %v", got, err)
	}
	if err := os.WriteFile(passwords, []byte("bob:changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the changed passwords", func() error {
		nc := dialPlain(t, r.addr)
		io.WriteString(nc, "set a 0 0 11\r\nbob changed\r\n")
		line, _ := bufio.NewReader(nc).ReadString('\n')
		if line != "STORED\r\n" {
			return fmt.Errorf("got %q", line)
		}
		return nil
	})
}

func TestPasswordForServers(t *testing.T) {
	passwords := file(t, "passwords", "ann:secret\n")
	servers := memcachedtest.StartN(t, 2, "-Y", passwords)
	good := startConfigured(t, memcachedtest.Addrs(servers), "passwords: "+passwords)
	c := connect(t, good.addr)
	for i := range 20 {
		c.mustSet(t, fmt.Sprint("key", i), "value")
		c.mustGet(t, fmt.Sprint("key", i), "value")
	}
	servers[0].Restart() // new connections must say it again
	waitFor(t, "the restarted server", func() error {
		for i := range 20 {
			if err := c.set(fmt.Sprint("key", i), "again"); err != nil {
				return err
			}
		}
		return nil
	})
	bad := startConfigured(t, memcachedtest.Addrs(servers), "passwords: "+file(t, "wrong", "ann:wrong\n"))
	say(t, dialPlain(t, bad.addr), "set a 0 0 1\r\nA\r\n", "SERVER_ERROR backend authentication failed\r\n")
}

func TestOnlyAllowedNetworks(t *testing.T) {
	servers := memcachedtest.Addrs(memcachedtest.StartN(t, 1))
	open := startWith(t, servers, "listen:\n  - {address: 127.0.0.1:0, allow: [10.0.0.0/8, 127.0.0.0/8]}")
	say(t, dialPlain(t, open.addr), "version\r\n", "VERSION ")
	shut := startWith(t, servers, "listen:\n  - {address: 127.0.0.1:0, allow: [10.0.0.0/8]}")
	nc := dialPlain(t, shut.addr)
	io.WriteString(nc, "version\r\n")
	if got, _ := io.ReadAll(nc); len(got) > 0 {
		t.Errorf("a client from elsewhere was answered: %q", got)
	}
	waitFor(t, "the metric", func() error { return metricAtLeast(shut, "cacherouter_client_denied_total", 1) })
}

func TestClientLimits(t *testing.T) {
	servers := memcachedtest.Addrs(memcachedtest.StartN(t, 1))
	r := startWith(t, servers, "listen: [127.0.0.1:0]\nmax_clients: 2\ntell_full: true\nidle_timeout: 300ms\nslow_timeout: 300ms")
	first, second := dialPlain(t, r.addr), dialPlain(t, r.addr)
	say(t, first, "version\r\n", "VERSION ")
	say(t, second, "version\r\n", "VERSION ")
	third := dialPlain(t, r.addr)
	if got, err := io.ReadAll(third); string(got) != "ERROR Too many open connections\r\n" || err != nil {
		t.Errorf("one too many: %q, %v", got, err)
	}
	for _, idle := range []net.Conn{first, second} { // both are closed, silently
		rest, err := io.ReadAll(idle)
		if !strings.HasSuffix(string(rest), "\r\n") || err != nil {
			t.Errorf("idle: %q, %v", rest, err)
		}
	}
	waitFor(t, "idle metric", func() error { return metricAtLeast(r, "cacherouter_client_closed_idle_total", 2) })

	slow := dialPlain(t, r.addr)
	value := strings.Repeat("x", 100_000)
	say(t, slow, "set big 0 0 100000\r\n"+value+"\r\n", "STORED\r\n")
	go io.WriteString(slow, strings.Repeat("get big\r\n", 5_000)) // ends when the router closes
	waitFor(t, "slow metric", func() error { return metricAtLeast(r, "cacherouter_client_closed_slow_total", 1) })
}

func TestNodeDiscovery(t *testing.T) {
	servers := memcachedtest.Addrs(memcachedtest.StartN(t, 1))
	r := startWith(t, servers, "listen: [127.0.0.1:0]\nadvertise: [10.0.0.1:11311, router-b.example:11311]")
	nc := dialPlain(t, r.addr)
	const nodes = "1\n10.0.0.1|10.0.0.1|11311 router-b.example||11311\n"
	say(t, nc, "config get cluster\r\n", fmt.Sprintf("CONFIG cluster 0 %d\r\n%s\r\nEND\r\n", len(nodes), nodes))
	say(t, nc, "get AmazonElastiCache:cluster\r\n", fmt.Sprintf("VALUE AmazonElastiCache:cluster 0 %d\r\n%s\r\nEND\r\n", len(nodes), nodes))
	say(t, nc, "config get other\r\n", "ERROR\r\n")
	off := startWith(t, servers, "listen: [127.0.0.1:0]")
	say(t, dialPlain(t, off.addr), "config get cluster\r\nget AmazonElastiCache:cluster\r\n", "ERROR\r\nEND\r\n")
}

// A TLS hello on a plain port is a line that never ends well; the router answers or
// closes, and goes on.
func TestTLSHelloOnAPlainPort(t *testing.T) {
	r := startRouter(t, memcachedtest.Addrs(memcachedtest.StartN(t, 1)))
	refused(t, r.addr, &tls.Config{InsecureSkipVerify: true})
	say(t, dialPlain(t, r.addr), "version\r\n", "VERSION ")
}
