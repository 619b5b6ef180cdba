package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// Our own stylesheet and script, and those of others that make console-assets has fetched;
// the pages work without these.
//
//go:embed static assets
var embedded embed.FS

// file is one that pages use.
type file struct {
	data []byte
	kind string
	hash string
}

// served are the files that there may be, with their media types.
var served = map[string]string{
	"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	htmxFile: "text/javascript; charset=utf-8", plotFile: "text/javascript; charset=utf-8", plotStyle: "text/css; charset=utf-8",
}

// The files of others.
const (
	htmxFile  = "htmx.min.js"
	plotFile  = "uPlot.iife.min.js"
	plotStyle = "uPlot.min.css"
)

func readFiles() (map[string]file, error) {
	out := map[string]file{}
	for name, kind := range served {
		for _, dir := range []string{"static", "assets"} {
			b, err := embedded.ReadFile(path.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			sum := sha256.Sum256(b)
			out[name] = file{b, kind, hex.EncodeToString(sum[:6])}
		}
	}
	return out, nil
}

// fileURL is the address of a file, "" where it is missing. It changes with what is in it.
func (c *Console) fileURL(name string) string {
	f, ok := c.files[name]
	if !ok {
		return ""
	}
	return base + "/assets/" + name + "?v=" + f.hash
}

func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	f, ok := c.files[r.PathValue("name")]
	if !ok {
		c.plain(w, r, http.StatusNotFound, "File not found.")
		return
	}
	w.Header().Set("Content-Type", f.kind)
	if r.URL.Query().Get("v") == f.hash {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.HasSuffix(f.kind, "svg+xml") {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	}
	_, _ = w.Write(f.data) // the client has left
}
