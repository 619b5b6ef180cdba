package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"openskill/host"
)

// writeSBOM writes what a binary is made of, as CycloneDX 1.6 in JSON. It says what the
// build recorded and no more: licences are not in a binary, so that none are named. The
// same binary gives the same bytes.
func writeSBOM(w io.Writer, info *debug.BuildInfo) error {
	properties := []cdx.Property{}
	for _, s := range info.Settings {
		if name := buildFacts[s.Key]; name != "" {
			properties = append(properties, cdx.Property{Name: name, Value: s.Value})
		}
	}
	product := cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: "openskill", Name: "openskill", Version: host.Version, Properties: &properties,
	}
	components := []cdx.Component{golang(info.GoVersion)}
	all := []string{components[0].BOMRef}
	for _, m := range info.Deps {
		c := component(m)
		components, all = append(components, c), append(all, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &product}
	bom.Components = &components
	// Which of them needs which is not in a binary; all of them are in this one.
	bom.Dependencies = &[]cdx.Dependency{{Ref: product.BOMRef, Dependencies: &all}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
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
		return nil, usage("--of %s: it is no openskill", quote(file))
	}
	return info, nil
}

// golang is the standard library and the runtime, which are in the binary too.
func golang(version string) cdx.Component {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "go"), " ")
	purl := "pkg:golang/std@" + url.PathEscape(version)
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: purl, Name: "std", Version: version, PackageURL: purl}
}

func component(m *debug.Module) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	purl := "pkg:golang/" + (&url.URL{Path: m.Path}).EscapedPath() + "@" + url.PathEscape(m.Version)
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: purl, Name: m.Path, Version: m.Version, PackageURL: purl}
	// "h1:" is a SHA-256 over the list of the module's files, which is what go.sum has. It
	// is not that of an archive: as a property nobody mistakes it for one.
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Properties = &[]cdx.Property{{Name: "go:sum:h1:sha256", Value: hex.EncodeToString(raw)}}
		}
	}
	return c
}
