package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cacherouter/reactor"
)

// Client asks the admin server of a router.
type Client struct {
	// Address is host:port, or "unix:" and a path.
	Address string
	// Token is what the router wants of those who change things; empty for none.
	Token string
	// Pool is the one that is asked about, of a router that has several.
	Pool string
}

const (
	// clientTimeout bounds one question.
	clientTimeout = 15 * time.Second
	// maxRefusal is how much is read of why a question was refused.
	maxRefusal = 4 << 10
)

// Ready asks whether the router takes traffic. The error says why not.
func (c Client) Ready(ctx context.Context) error {
	body, err := c.open(ctx, "GET", "/readyz")
	if err != nil {
		return err
	}
	return body.Close()
}

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

// Changes asks for what has changed lately.
func (c Client) Changes(ctx context.Context) (all Changes, err error) {
	return all, c.ask(ctx, "GET", "/api/v1/changes", &all)
}

// ask sends a request and decodes its answer.
func (c Client) ask(ctx context.Context, method, path string, answer any) error {
	return c.askFor(ctx, clientTimeout, method, path, answer)
}

// askFor is ask for an answer that may take so long.
func (c Client) askFor(ctx context.Context, timeout time.Duration, method, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := c.open(ctx, method, path)
	if err != nil {
		return err
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("cannot ask the router at %s: %w", c.Address, err)
	}
	return c.decode(b, answer)
}

// open sends a request and returns the body of its answer, for as long as the context
// lasts. One that was refused is an error with what the router says.
func (c Client) open(ctx context.Context, method, path string) (io.ReadCloser, error) {
	if c.Pool != "" {
		join := "?"
		if strings.Contains(path, "?") {
			join = "&"
		}
		path += join + "pool=" + url.QueryEscape(c.Pool)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
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
		if u := new(url.Error); errors.As(err, &u) {
			err = u.Err // without the URL, which nobody has given
		}
		return nil, fmt.Errorf("cannot ask the router at %s: %w", c.Address, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		if err != nil {
			return nil, fmt.Errorf("cannot ask the router at %s: %w", c.Address, err)
		}
		return nil, fmt.Errorf("the router at %s says: %s", c.Address, bytes.TrimSpace(b))
	}
	return resp.Body, nil
}

// decode reads an answer.
func (c Client) decode(b []byte, answer any) error {
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("the router at %s gives an answer that cannot be read: %w", c.Address, err)
	}
	return nil
}
