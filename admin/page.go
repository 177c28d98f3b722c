package admin

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the page at / shows: banners for what is wrong between the routers, and
// the servers.
type page struct {
	Banners []string
	Members Members
	Routers Routers
}

// bannersOf says in a sentence each what is wrong between the routers.
func bannersOf(r Routers) (all []string) {
	for _, b := range []struct {
		on   bool
		text string
	}{
		{r.PlacementsDiffer, "Routers place keys differently although they have one list of servers: the same key is looked for in different places."},
		{r.ListsDiffer, "Routers have different lists of servers or settings of placement: compare their configurations."},
		{r.Frozen, "Too few routers can be heard: this one changes no placement."},
		{r.Abstains, "This router does not trust what it sees of the servers, and leaves it to the others to judge them."},
	} {
		if b.on {
			all = append(all, b.text)
		}
	}
	return all
}

// index answers GET /. It is whole or not at all, and asks nothing of the loops.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	m := s.cfg.Membership
	p := page{Members: membersOf(m), Routers: routersOf(m)}
	p.Banners = bannersOf(p.Routers)
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.Write(b.Bytes())
}
