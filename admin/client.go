package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"cacherouter/reactor"
)

// Client asks the admin server of a router.
type Client struct {
	// Address is host:port, or "unix:" and a path.
	Address string
	// Token is what the router wants of those who change things; empty for none.
	Token string
}

// clientTimeout bounds one question.
const clientTimeout = 15 * time.Second

// Members asks for the servers.
func (c Client) Members(ctx context.Context) (m Members, err error) {
	return m, c.ask(ctx, "GET", "/api/v1/members", &m)
}

// Drain asks to move a server's keys away; undo lets it return.
func (c Client) Drain(ctx context.Context, server string, undo bool) error {
	path := "/api/v1/drain"
	if undo {
		path = "/api/v1/undrain"
	}
	return c.ask(ctx, "POST", path+"?server="+url.QueryEscape(server), new(Members))
}

// ask sends a request and decodes its answer. One that was refused is an error with what
// the router says.
func (c Client) ask(ctx context.Context, method, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, nil)
	if err != nil {
		return err
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		network, addr := reactor.SplitAddress(c.Address)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return fmt.Errorf("cannot ask the router at %s: %w", c.Address, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("cannot ask the router at %s: %w", c.Address, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the router at %s says: %s", c.Address, bytes.TrimSpace(b))
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("the router at %s gives an answer that cannot be read: %w", c.Address, err)
	}
	return nil
}
