package admin

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
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

// page adds the page and what belongs to it.
func (s *Server) page(mux *http.ServeMux) {
	files, err := fs.ReadDir(assets, "assets")
	if err != nil {
		panic("bug: " + err.Error())
	}
	for _, f := range files {
		b, err := assets.ReadFile("assets/" + f.Name())
		if err != nil {
			panic("bug: " + err.Error())
		}
		if f.Name() != "index.html" {
			mux.HandleFunc("GET /assets/"+f.Name(), asset(f.Name(), b))
			continue
		}
		index := asset(f.Name(), b)
		mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
			index(w, r)
			http.NewResponseController(w).Flush() // an error means that nobody waits for it
			s.primed()
		})
	}
}

// asset serves one file. Browsers keep it and ask whether it has changed.
func asset(name string, b []byte) http.HandlerFunc {
	sum := sha256.Sum256(b)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	kind := kinds[path.Ext(name)]
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("ETag", tag)
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Type", kind)
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(b))
	}
}
