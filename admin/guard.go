package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// What it takes to change something; see Overview.Actions.
const (
	actionsOpen  = "open"
	actionsToken = "token"
	actionsNone  = "none"
)

// actions says what it takes.
func (s *Server) actions() string {
	switch {
	case s.cfg.Token != nil:
		return actionsToken
	case s.cfg.Local:
		return actionsOpen
	}
	return actionsNone
}

// action lets a request change something if it may: it has the token; or, where there is
// none, it comes from this host, to an address that only this host reaches. That a browser
// sends what another site has told it to is found out from what browsers add to requests.
func (s *Server) action(do http.HandlerFunc) http.Handler {
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch s.actions() {
		case actionsNone:
			http.Error(w, "nothing can be changed here, as other hosts reach this address: listen on a loopback address, or set admin_token_file", http.StatusForbidden)
		case actionsToken:
			token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			switch {
			case !ok:
				w.Header().Set("WWW-Authenticate", `Bearer realm="cacherouter"`)
				http.Error(w, "this takes the token of admin_token_file: send it as Authorization: Bearer TOKEN", http.StatusUnauthorized)
			case !same(token, s.cfg.Token()):
				http.Error(w, "the token is not that of admin_token_file", http.StatusForbidden)
			default:
				do(w, r)
			}
		default:
			onlyLoopback(do).ServeHTTP(w, r)
		}
	})
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("refused: a page of another site (origin %q) has sent this", r.Header.Get("Origin")), http.StatusForbidden)
	}))
	return protection.Handler(guarded)
}

// same compares in a time that tells nothing.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// onlyKnownHosts refuses requests for names that are not this host's where only this host
// listens. A site whose name is made to resolve to a loopback address could read all of
// this otherwise, as browsers take it for that site's own. Browsers always say which name
// they ask for; health checks may not.
func (s *Server) onlyKnownHosts(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.Local && !s.cfg.Unix && r.Host != "" && !s.knownHost(r.Host) {
			http.Error(w, fmt.Sprintf("%q is no name of this host: ask for localhost, or list it in admin_hosts", r.Host), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (s *Server) knownHost(hostPort string) bool {
	return Loopback(hostPort) || slices.Contains(s.cfg.Hosts, hostOf(hostPort))
}

// hostOf returns the host of host:port, or of a host alone.
func hostOf(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return strings.Trim(hostPort, "[]")
	}
	return host
}

// Loopback reports whether an address, with a port or without, is one that only its own host
// reaches.
func Loopback(hostPort string) bool {
	host := hostOf(hostPort)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isHere reports whether a client is on this host. Those of unix sockets are.
func isHere(addr string) bool {
	return addr == "" || strings.HasPrefix(addr, "@") || strings.HasPrefix(addr, "/") || Loopback(addr)
}

// onlyLoopback serves clients on the same host only.
func onlyLoopback(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isHere(r.RemoteAddr) {
			http.Error(w, "only from the same host", http.StatusForbidden)
			return
		}
		h(w, r)
	})
}
