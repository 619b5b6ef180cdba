// Package cyclonedx writes bills of materials in CycloneDX 1.6, as JSON.
package cyclonedx

import (
	"encoding/json"
	"io"
)

// Bill is a bill of materials, as far as a build or a lock knows one.
type Bill struct {
	Schema      string `json:"$schema"`
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Component Component `json:"component"`
	} `json:"metadata"`
	Components   []Component `json:"components"`
	Dependencies []depends   `json:"dependencies"`
}

// Component is a part of a bill, or what it is of.
type Component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []Hash     `json:"hashes,omitempty"`
	Properties []Property `json:"properties,omitempty"`
}

// Hash is the digest of a component's archive.
type Hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

// Property is a fact that the format has no field for.
type Property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type depends struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// New begins a bill of an application.
func New(of Component) *Bill {
	b := &Bill{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Components: []Component{}}
	of.Type = "application"
	b.Metadata.Component = of
	return b
}

// Write writes a bill whose application has all components: which of them needs which is not
// known. The same bill gives the same bytes.
func (b *Bill) Write(w io.Writer) error {
	all := depends{Ref: b.Metadata.Component.Ref, On: []string{}}
	for _, c := range b.Components {
		all.On = append(all.On, c.Ref)
	}
	b.Dependencies = []depends{all}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(b)
}
