package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"cacherouter/reload"
)

// Those of reloads.
var (
	reloadedFamily  = newFamily(gauges, "config_last_reload_successful", "1 if the last reload of the configuration was put in force, or there was none; 0 if the file has a fault, moves too many keys or takes an upgrade, and the configuration before is in force.")
	loadedAtFamily  = newFamily(gauges, "config_last_reload_success_timestamp_seconds", "When the configuration in force was last found to be that of the file: at the start, or by a reload.")
	unloadedFamily  = newFamily(gauges, "config_settings_pending", "Settings of the file that wait for an upgrade.")
	outcomesFamily  = newFamily(counts, "config_reloads_total", "Reloads of the configuration, by what became of them: applied, unchanged, invalid (the file), refused (the change) or failed.", "outcome")
	reloadsFamilies = []*family{reloadedFamily, loadedAtFamily, unloadedFamily, outcomesFamily}
)

// addReloads adds what has become of reloads.
func addReloads(to *figures, s reload.State) {
	to.add(reloadedFamily, number(s.Error == ""))
	to.add(loadedAtFamily, float64(s.Loaded.UnixMilli())/1000)
	to.add(unloadedFamily, float64(len(s.Upgrade)))
	for o, n := range s.Counts {
		to.add(outcomesFamily, float64(n), string(o))
	}
}

// reloadPages adds the pages about reloads.
func (s *Server) reloadPages(mux *http.ServeMux) {
	if s.cfg.Reload != nil {
		mux.Handle("POST /api/v1/reload", s.action(s.reload))
	}
	if s.cfg.Reloads != nil {
		mux.HandleFunc("GET /api/v1/reload", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.cfg.Reloads()) })
	}
}

// reload answers POST /api/v1/reload?dry_run=true&force=true. One that changes nothing, as it may
// not, is answered with the reason; one that was only to be tried with what would be.
func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	var o reload.Options
	for name, to := range map[string]*bool{"dry_run": &o.DryRun, "force": &o.Force} {
		if v := r.FormValue(name); v != "" {
			var err error
			if *to, err = strconv.ParseBool(v); err != nil {
				http.Error(w, name+": want true or false", http.StatusBadRequest)
				return
			}
		}
	}
	report := s.cfg.Reload(o)
	if !report.OK() && (!o.DryRun || report.Outcome == reload.Invalid) {
		http.Error(w, report.Error, http.StatusUnprocessableEntity)
		return
	}
	reply(w, report)
}

// problemOf says what is wrong with the configuration file, if anything is.
func problemOf(s reload.State) []Problem {
	if s.Error == "" {
		return nil
	}
	return []Problem{{levelWarning, fmt.Sprintf("The last reload changed nothing: %s.", s.Error)}}
}

// reloadTimeout bounds a reload. It waits for servers, for other routers, and for clients that
// still have requests outstanding.
const reloadTimeout = 2 * time.Minute

// Reload asks for a reload.
func (c Client) Reload(ctx context.Context, o reload.Options) (report reload.Report, err error) {
	q := url.Values{}
	if o.DryRun {
		q.Set("dry_run", "true")
	}
	if o.Force {
		q.Set("force", "true")
	}
	return report, c.askFor(ctx, reloadTimeout, "POST", "/api/v1/reload?"+q.Encode(), &report)
}
