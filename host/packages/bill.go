package packages

import (
	"io"
	"net/url"
	"strings"

	"openskill/internal/cyclonedx"
)

// WriteBill writes the packages of a lock as a bill of materials of a skill: CycloneDX 1.6 in JSON.
// The same lock gives the same bytes.
func (l *Lock) WriteBill(w io.Writer, name, version string) error {
	bom := cyclonedx.New(cyclonedx.Component{Ref: "skill", Name: name, Version: version})
	seen := map[string]bool{}
	for i := range l.Packages {
		p := &l.Packages[i]
		kind := "pypi"
		if p.Ecosystem == NPM {
			kind = "npm"
		}
		purl := "pkg:" + kind + "/" + strings.ReplaceAll((&url.URL{Path: p.Name}).EscapedPath(), "@", "%40") + "@" + url.PathEscape(p.Version)
		if seen[purl] {
			continue // it is there at two places
		}
		seen[purl] = true
		c := cyclonedx.Component{Type: "library", Ref: purl, Name: p.Name, Version: p.Version, PURL: purl}
		if sum, ok := strings.CutPrefix(p.Digest, "sha256:"); ok {
			c.Hashes = []cyclonedx.Hash{{Alg: "SHA-256", Content: sum}}
		} else {
			c.Properties = []cyclonedx.Property{{Name: "openskill:from", Value: "runtime"}}
		}
		bom.Components = append(bom.Components, c)
	}
	return bom.Write(w)
}
