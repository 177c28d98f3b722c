package admin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var assets embed.FS

// policy lets the page have what is embedded here and talk to this server, and nothing else
// at all.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// kinds are the types of files by their extensions, whatever the system says of them.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// site is what belongs to the page, by path. It is put together when it is first needed: the
// fewer files a browser has to ask for, the sooner there are figures.
var site = sync.OnceValue(func() map[string]*asset {
	return map[string]*asset{
		"/{$}":             newAsset("index.html", source("index.html")),
		"/assets/page.css": newAsset("page.css", source("base.css")+source("parts.css")),
		"/assets/page.js":  newAsset("page.js", bundled("app", func(name string) string { return source(name + ".js") })),
		"/assets/icon.svg": newAsset("icon.svg", source("icon.svg")),
	}
})

// source returns a file of assets.
func source(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return string(b)
}

// page adds the page and what belongs to it.
func (s *Server) page(mux *http.ServeMux) {
	for at, a := range site() {
		if a.name != "index.html" {
			mux.Handle("GET "+at, a)
			continue
		}
		mux.HandleFunc("GET "+at, func(w http.ResponseWriter, r *http.Request) {
			a.ServeHTTP(w, r)
			http.NewResponseController(w).Flush() // an error means that nobody waits for it
			s.primed()
		})
	}
}

// asset is one file, plain and packed.
type asset struct {
	name          string
	tag           string // of the contents
	plain, packed []byte
}

func newAsset(name, text string) *asset {
	sum := sha256.Sum256([]byte(text))
	a := &asset{name: name, tag: hex.EncodeToString(sum[:8]), plain: []byte(text)}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic("bug: " + err.Error())
	}
	z.Write(a.plain)
	z.Close()
	a.packed = b.Bytes()
	return a
}

// ServeHTTP implements http.Handler. Browsers keep the file and ask whether it has changed.
func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, b, tag := w.Header(), a.plain, a.tag
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		b, tag = a.packed, a.tag+"-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", `"`+tag+`"`)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", kinds[path.Ext(a.name)])
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(b))
}
