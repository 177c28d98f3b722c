package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// docker asks a Docker engine, in the words of its HTTP API.
type docker struct{ http http.Client }

// requestTimeout bounds one request. An engine on a busy machine takes seconds to start a container.
const requestTimeout = time.Minute

func newDocker(socket string) *docker {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &docker{http.Client{Timeout: requestTimeout, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// container is what we need to know of one.
type container struct {
	ID     string
	Config struct{ Labels map[string]string }
	State  struct{ Status string }

	NetworkSettings struct{ Networks map[string]*endpoint }
}

// endpoint is a container's place in a network.
type endpoint struct {
	NetworkID  string
	Aliases    []string
	IPAMConfig *struct{ IPv4Address string } // nil, unless the address is chosen by the user
}

// Labels by which Compose knows its containers.
const (
	labelProject = "com.docker.compose.project"
	labelService = "com.docker.compose.service"
	labelOneOff  = "com.docker.compose.oneoff" // "True" of what "run" started
)

// find returns the container of a service of a project.
func (d *docker) find(ctx context.Context, project, service string) (*container, error) {
	filter, err := json.Marshal(map[string][]string{"label": {labelProject + "=" + project, labelService + "=" + service, labelOneOff + "=False"}})
	if err != nil {
		panic("bug: " + err.Error())
	}
	var all []struct{ Id string }
	if err := d.ask(ctx, "GET", "/containers/json?all=1&filters="+url.QueryEscape(string(filter)), nil, &all); err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("project %s has %d containers of service %q, want one", project, len(all), service)
	}
	return d.inspect(ctx, all[0].Id)
}

func (d *docker) inspect(ctx context.Context, id string) (*container, error) {
	c := new(container)
	return c, d.ask(ctx, "GET", "/containers/"+url.PathEscape(id)+"/json", nil, c)
}

// do has something done with a container: kill, start, pause or unpause.
func (d *docker) do(ctx context.Context, c *container, what string) error {
	return d.ask(ctx, "POST", "/containers/"+c.ID+"/"+what, nil, nil)
}

// unplug takes a container out of a network, and plug puts it back with its names, and with the address
// that the user has chosen for it.
func (d *docker) unplug(ctx context.Context, c *container, e *endpoint) error {
	return d.ask(ctx, "POST", "/networks/"+e.NetworkID+"/disconnect", map[string]any{"Container": c.ID}, nil)
}

func (d *docker) plug(ctx context.Context, c *container, e *endpoint) error {
	as := map[string]any{"Aliases": e.Aliases, "IPAMConfig": e.IPAMConfig}
	return d.ask(ctx, "POST", "/networks/"+e.NetworkID+"/connect", map[string]any{"Container": c.ID, "EndpointConfig": as}, nil)
}

// ask sends a request and decodes its answer, unless that is nil.
func (d *docker) ask(ctx context.Context, method, path string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			panic("bug: " + err.Error())
		}
		sent = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.http.Do(req)
	if err != nil {
		return fmt.Errorf("cannot ask the Docker engine: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("cannot ask the Docker engine: %w", err)
	case resp.StatusCode >= 300:
		return fmt.Errorf("the Docker engine refuses %s %s: %s", method, path, strings.TrimSpace(string(b)))
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("the Docker engine gives an answer that cannot be read: %w", err)
	}
	return nil
}
