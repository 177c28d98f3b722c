package admin

import (
	"net/http/httptest"
	"testing"

	"cacherouter/reload"
)

func TestWhoMayChange(t *testing.T) {
	reloads := 0
	config := func(c Config) *Server {
		c.Router, c.Reload = newIdle(1), func(reload.Options) *reload.Report { reloads++; return &reload.Report{Outcome: reload.Applied} }
		return New(c)
	}
	const token = "sesame-open-sesame"
	local := config(Config{Local: true, Hosts: []string{"cache.example"}})
	wide := config(Config{})
	guarded := config(Config{Token: func() string { return token }})
	f := func(s *Server, from, host string, headers map[string]string, status int, text string) {
		t.Helper()
		req := httptest.NewRequest("POST", "/api/v1/reload", nil)
		req.RemoteAddr, req.Host = from, host
		for k, v := range headers {
			req.Header.Set(k, v)
		}
		before := reloads
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, req)
		wants(t, w, status, text)
		if done := reloads > before; done != (status == 200) {
			t.Errorf("status %d, and reloaded: %v", w.Code, done)
		}
	}
	none := map[string]string{}
	f(local, here, "localhost:11312", none, 200, "applied")
	f(local, here, "127.0.0.1:11312", none, 200, "applied")
	f(local, here, "[::1]:11312", none, 200, "applied")
	f(local, here, "cache.example", none, 200, "applied")
	f(local, here, "evil.example:11312", none, 421, "evil.example")
	f(local, here, "", none, 200, "applied") // no browser
	f(local, "10.0.0.1:9", "localhost", none, 403, "same host")
	f(wide, here, "10.0.0.7:11312", none, 403, "admin_token_file")

	// What a browser adds for a page of another site, and for ours.
	f(local, here, "localhost:11312", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "another site")
	f(local, here, "localhost:11312", map[string]string{"Sec-Fetch-Site": "same-site"}, 403, "another site")
	f(local, here, "localhost:11312", map[string]string{"Origin": "http://evil.example"}, 403, "evil.example")
	f(local, here, "localhost:11312", map[string]string{"Origin": "null"}, 403, "another site")
	f(local, here, "localhost:11312", map[string]string{"Origin": "http://localhost:11312", "Sec-Fetch-Site": "same-origin"}, 200, "applied")

	bearer := func(s string) map[string]string { return map[string]string{"Authorization": s} }
	f(guarded, "10.0.0.1:9", "router:11312", bearer("Bearer "+token), 200, "applied")
	f(guarded, "10.0.0.1:9", "router:11312", none, 401, "Authorization: Bearer")
	f(guarded, here, "localhost", none, 401, "Authorization: Bearer")
	f(guarded, "10.0.0.1:9", "router:11312", bearer("Bearer wrong"), 403, "not that of")
	f(guarded, "10.0.0.1:9", "router:11312", bearer("Bearer "), 403, "not that of")
	f(guarded, "10.0.0.1:9", "router:11312", bearer("Basic "+token), 401, "Bearer")
	f(guarded, "10.0.0.1:9", "router:11312", map[string]string{"Authorization": "Bearer " + token, "Sec-Fetch-Site": "cross-site"}, 403, "another site")
}

// A site whose name resolves to a loopback address reads nothing either.
func TestForeignNamesReadNothing(t *testing.T) {
	s := New(Config{Router: newIdle(1), Local: true})
	for _, path := range []string{"/", "/api/v1/overview", "/api/v1/where?key=k", "/metrics", "/assets/page.js"} {
		req := httptest.NewRequest("GET", path, nil)
		req.RemoteAddr, req.Host = here, "rebound.example:11312"
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, req)
		wants(t, w, 421, "rebound.example")
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9": true, "[::1]:1": true, "[::1]": true, "::1": true, "localhost:1": true, "localhost": true,
		"10.0.0.1:1": false, "0.0.0.0:1": false, "[::]:1": false, ":1": false, "": false, "localhost.example:1": false, "127.0.0.1.example": false, "/run/x": false,
	} {
		if got := Loopback(addr); got != want {
			t.Errorf("%q is loopback: %v", addr, got)
		}
	}
}
