package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"path"
	"runtime/debug"
	"strings"

	"openskill/host/app"
	"openskill/internal/cyclonedx"
)

// writeSBOM writes what a binary is made of, as CycloneDX 1.6 in JSON. It says what the
// build recorded and no more: licences are not in a binary, so that none are named. The
// same binary gives the same bytes.
func writeSBOM(w io.Writer, info *debug.BuildInfo) error {
	bom := cyclonedx.New(cyclonedx.Component{Ref: "openskill", Name: "openskill", Version: app.Version})
	product := &bom.Metadata.Component
	for _, s := range info.Settings {
		if name := buildFacts[s.Key]; name != "" {
			product.Properties = append(product.Properties, cyclonedx.Property{Name: name, Value: s.Value})
		}
	}
	bom.Components = []cyclonedx.Component{golang(info.GoVersion)}
	for _, m := range info.Deps {
		bom.Components = append(bom.Components, component(m))
	}
	// Which of them needs which is not in a binary; all of them are in this one.
	return bom.Write(w)
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
func golang(version string) cyclonedx.Component {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "go"), " ")
	purl := "pkg:golang/std@" + url.PathEscape(version)
	return cyclonedx.Component{Type: "library", Ref: purl, Name: "std", Version: version, PURL: purl}
}

func component(m *debug.Module) cyclonedx.Component {
	edits := ""
	if r := m.Replace; r != nil && r.Sum != "" {
		m = r
	} else if r != nil { // a copy with the edits of the project, in a folder named by their digest
		edits = path.Base(r.Path)
	}
	purl := "pkg:golang/" + (&url.URL{Path: m.Path}).EscapedPath() + "@" + url.PathEscape(m.Version)
	c := cyclonedx.Component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	// "h1:" is a SHA-256 over the list of the module's files, which is what go.sum has. It
	// is not that of an archive: as a property nobody mistakes it for one.
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Properties = []cyclonedx.Property{{Name: "go:sum:h1:sha256", Value: hex.EncodeToString(raw)}}
		}
	}
	if edits != "" {
		c.Properties = append(c.Properties, cyclonedx.Property{Name: "openskill:edits", Value: edits})
	}
	return c
}
