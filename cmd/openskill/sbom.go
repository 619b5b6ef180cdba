package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	"openskill/host/app"
	"openskill/host/packages"
)

// bill is a bill of materials in CycloneDX 1.6, as far as a build knows one.
type bill struct {
	Schema      string `json:"$schema"`
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Component part `json:"component"`
	} `json:"metadata"`
	Components   []part    `json:"components"`
	Dependencies []depends `json:"dependencies"`
}

// part is a component of a bill.
type part struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

// hash is the digest of a component's archive.
type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type depends struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// writeSBOM writes what a binary is made of, as CycloneDX 1.6 in JSON. It says what the
// build recorded and no more: licences are not in a binary, so that none are named. The
// same binary gives the same bytes.
func writeSBOM(w io.Writer, info *debug.BuildInfo) error {
	bom := bill{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	product := &bom.Metadata.Component
	*product = part{Type: "application", Ref: "openskill", Name: "openskill", Version: app.Version}
	for _, s := range info.Settings {
		if name := buildFacts[s.Key]; name != "" {
			product.Properties = append(product.Properties, property{name, s.Value})
		}
	}
	bom.Components = []part{golang(info.GoVersion)}
	for _, m := range info.Deps {
		bom.Components = append(bom.Components, component(m))
	}
	// Which of them needs which is not in a binary; all of them are in this one.
	return bom.write(w)
}

// write writes a bill whose product has all components.
func (bom *bill) write(w io.Writer) error {
	all := depends{Ref: bom.Metadata.Component.Ref, On: []string{}}
	for _, c := range bom.Components {
		all.On = append(all.On, c.Ref)
	}
	bom.Dependencies = []depends{all}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(bom)
}

// writeSkillSBOM writes the packages that the scripts of a folder were given. The same lock
// gives the same bytes.
func writeSkillSBOM(w io.Writer, l *packages.Lock) error {
	bom := bill{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Components: []part{}}
	bom.Metadata.Component = part{Type: "application", Ref: "skill", Name: filepath.Base(l.Folder)}
	seen := map[string]bool{}
	for i := range l.Packages {
		p := &l.Packages[i]
		kind := "pypi"
		if p.Ecosystem == packages.NPM {
			kind = "npm"
		}
		purl := "pkg:" + kind + "/" + strings.ReplaceAll((&url.URL{Path: p.Name}).EscapedPath(), "@", "%40") + "@" + url.PathEscape(p.Version)
		if seen[purl] {
			continue // it is there at two places
		}
		seen[purl] = true
		c := part{Type: "library", Ref: purl, Name: p.Name, Version: p.Version, PURL: purl}
		if sum, ok := strings.CutPrefix(p.Digest, "sha256:"); ok {
			c.Hashes = []hash{{"SHA-256", sum}}
		} else {
			c.Properties = []property{{"openskill:from", "runtime"}}
		}
		bom.Components = append(bom.Components, c)
	}
	return bom.write(w)
}

// buildFacts are the facts of a build that its bill has.
var buildFacts = map[string]string{
	"GOOS": "openskill:os", "GOARCH": "openskill:arch", "vcs.revision": "openskill:commit", "vcs.modified": "openskill:commit:changed",
}

// builtFrom reads what a build recorded in a binary; "" is this one.
func builtFrom(file string) (*debug.BuildInfo, error) {
	if file == "" {
		info, ok := debug.ReadBuildInfo()
		if !ok {
			return nil, hostFailed(errors.New("this binary does not say what it was built from"))
		}
		return info, nil
	}
	info, err := buildinfo.ReadFile(file)
	switch {
	case err != nil:
		return nil, usage("--of %s: %v", quote(file), err)
	case info.Main.Path != "openskill":
		return nil, usage("--of %s: not an openskill binary", quote(file))
	}
	return info, nil
}

// golang is the standard library and the runtime, which are in the binary too.
func golang(version string) part {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "go"), " ")
	purl := "pkg:golang/std@" + url.PathEscape(version)
	return part{Type: "library", Ref: purl, Name: "std", Version: version, PURL: purl}
}

func component(m *debug.Module) part {
	edits := ""
	if r := m.Replace; r != nil && r.Sum != "" {
		m = r
	} else if r != nil { // a copy with the edits of the project, in a folder named by their digest
		edits = path.Base(r.Path)
	}
	purl := "pkg:golang/" + (&url.URL{Path: m.Path}).EscapedPath() + "@" + url.PathEscape(m.Version)
	c := part{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	// "h1:" is a SHA-256 over the list of the module's files, which is what go.sum has. It
	// is not that of an archive: as a property nobody mistakes it for one.
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Properties = []property{{"go:sum:h1:sha256", hex.EncodeToString(raw)}}
		}
	}
	if edits != "" {
		c.Properties = append(c.Properties, property{"openskill:edits", edits})
	}
	return c
}
