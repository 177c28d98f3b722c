//go:build linux

package fleet

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// admin is where the router's own view of things is asked for.
func (r *Router) admin() string { return fmt.Sprintf("%s:%d", r.host, adminPort) }

// Metric returns the value of a metric, whose name has its labels behind it as they are shown, if it
// has any.
func (r *Router) Metric(ctx context.Context, name string) (float64, error) {
	body, err := r.look(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("router %s has no metric %s", r.Name, name)
}

// Hot returns the keys that the router calls hot or severe.
func (r *Router) Hot(ctx context.Context) (keys []string, err error) {
	body, err := r.look(ctx, "/api/v1/hotkeys")
	if err != nil {
		return nil, err
	}
	var report struct{ Keys []struct{ Key, Level string } }
	if err := json.Unmarshal(body, &report); err != nil {
		return nil, fmt.Errorf("cannot read the hot keys of router %s: %w", r.Name, err)
	}
	for _, k := range report.Keys {
		if k.Level != "cold" {
			keys = append(keys, k.Key)
		}
	}
	return keys, nil
}

// look asks the router's administration server.
func (r *Router) look(ctx context.Context, path string) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.admin()+path, nil)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, fmt.Errorf("cannot ask router %s: %w", r.Name, err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("router %s says %s", r.Name, reply.Status)
	}
	return body, err
}
