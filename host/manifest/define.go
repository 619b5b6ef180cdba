package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// Place says where the skill of an id came from, as the operator named it: a file, and
// the line of an entry in a list. "" for an id that is not here.
func (r *Registry) Place(id skill.ID) string { return r.places[id] }

// Bare reports whether a definition from elsewhere may have an id: a skill is a script of
// the CLI folder that nothing defines, or was pulled.
func (r *Registry) Bare(id skill.ID) bool { return r.bare[id] || r.pulled[id] }

// Pulled reports whether a skill came from elsewhere, whatever its trust.
func (r *Registry) Pulled(id skill.ID) bool { return r.pulled[id] }

// Defined gives the entries of lists that are sound but have no code on this host, in
// the order of the lists. They can be shown, and not called; each is among the
// [Registry.Problems] too, which say what is missing.
func (r *Registry) Defined() []*Skill { return r.defined }

// define keeps an entry whose code is missing, unless its id is taken.
func (r *Registry) define(o *Options, m *manifest, file string) {
	if _, taken := r.places[m.id]; taken {
		return
	}
	for _, s := range r.defined {
		if s.Descriptor.ID == m.id {
			return
		}
	}
	r.defined = append(r.defined, o.codeless(m, fmt.Appendf(nil, "%s:%d", file, m.line)))
}

// codeless makes the Skill of an entry that nothing can run here. Its digest is that
// of what defines it: there are no files.
func (o *Options) codeless(m *manifest, text []byte) *Skill {
	if m.primary.Kind == "" {
		script(m)
	}
	sum := sha256.Sum256(append([]byte("openskill definition 1\n"), text...))
	return o.build(m, "", "sha256:"+hex.EncodeToString(sum[:]), skill.Trusted)
}

// MaxDescription is the length of a description in bytes.
const MaxDescription = maxDescription

// Of makes a registry of skills that are known already, each of another id. It keeps
// places and problems of r.
func (r *Registry) Of(skills []*Skill) *Registry {
	out := &Registry{skills: make(map[skill.ID]*Skill, len(skills)), places: r.places, problems: r.problems, defined: r.defined, bare: r.bare, pulled: r.pulled}
	for _, s := range skills {
		out.skills[s.Descriptor.ID] = s
		out.order = append(out.order, s.Descriptor.ID)
	}
	slices.Sort(out.order)
	return out
}

// Define makes a skill of one entry in the form of a list's, as JSON or YAML, that
// came without a folder of its own. Its code is what the operator has put beside: for
// an entry without "type" the script of the CLI folder that has its name, otherwise
// the folder of its name below a root, which needs no skill.yaml. Without code here
// the skill has no Folder, and missing says what would be its code.
// The skill is nil if there are problems with the entry. One that asks for what files
// alone can say has a problem too, and comes without its code, to be shown.
func Define(entry []byte, o Options) (s *Skill, missing string, problems []Problem) {
	const file = "definition"
	if err := o.check(); err != nil {
		return nil, "", []Problem{{File: file, Message: err.Error()}}
	}
	p := &parser{file: file, trust: skill.Trusted, packages: o.Packages}
	n := p.root(entry)
	if n == nil {
		return nil, "", p.problems
	}
	m := p.manifest(n, true)
	if len(p.problems) > 0 {
		return nil, "", p.problems
	}
	if why := ofFiles(m); why != "" {
		return o.codeless(m, entry), why, []Problem{{File: file, Message: why}}
	}
	origins := NewOrigins(o.StateDir)
	if m.primary.Kind == "" {
		script(m)
		folder, err := o.cliFolder(origins)
		if o.CLIDir == "" || err != nil {
			return o.codeless(m, entry), "no CLI folder has a script " + m.primary.Entry, nil
		}
		digest, err := digestScript(folder, m.primary.Entry)
		if err != nil {
			return o.codeless(m, entry), "the CLI folder has no usable " + m.primary.Entry, nil
		}
		return o.build(m, folder, digest, skill.Trusted), "", nil
	}
	for _, root := range o.Roots {
		folder, err := realFolder(root.Path)
		if err != nil || root.Trust == skill.Community {
			continue
		}
		own := filepath.Join(folder, string(m.id))
		if info, err := os.Lstat(own); err != nil || !info.IsDir() || Manifest(own) != "" {
			continue
		}
		if inAgentSkill(own, m.primary.Entry) {
			return o.codeless(m, entry), fmt.Sprintf("the folder %s is an Agent Skill; its scripts run only as its scripts", m.id), nil
		}
		digest, ok := usable(own, m)
		if ok && origins.Of(own, skill.Trusted, func() string { return digest }).Trust == skill.Trusted { // no code of a stranger's
			return o.build(m, own, digest, skill.Trusted), "", nil
		}
	}
	return o.codeless(m, entry), fmt.Sprintf("no folder of skills has a folder %s with %s", m.id, m.primary.Entry), nil
}

// ofFiles says why an entry must stand in a file on the operator's machine; "" where it
// need not. Who may write the database of a host, or ask it over a network, does not by
// that get native code or a grant. A script of the CLI folder is native by lying there.
func ofFiles(m *manifest) string {
	var what string
	switch p := m.permissions; {
	case m.primary.Kind != "" && !Sandboxed(m.primary.Kind):
		what = "code outside the sandbox (" + string(m.primary.Kind) + ")"
	case m.fallback != nil && !Sandboxed(m.fallback.Kind):
		what = "a fallback outside the sandbox (" + string(m.fallback.Kind) + ")"
	case p != nil && (p.Data || len(p.HTTP) > 0 || len(p.Env) > 0 || len(p.Skills) > 0):
		what = "permissions for data, http, env or skills"
	default:
		return ""
	}
	return fmt.Sprintf("%s is allowed only in files on the host's machine: write %s/%s into a folder of skills there", what, m.id, ManifestFile)
}

// Sandboxed reports whether skills of a kind run in the engine's sandbox.
func Sandboxed(k skill.Kind) bool { return strings.HasPrefix(string(k), "wasm:") }

// inAgentSkill reports whether an entry lies in the folder of an Agent Skill, whose
// scripts may need somebody's approval.
func inAgentSkill(folder, entry string) bool {
	for dir := filepath.Dir(filepath.Join(folder, filepath.FromSlash(entry))); ; dir = filepath.Dir(dir) {
		if exists(dir, "SKILL.md") {
			return true
		}
		if dir == folder || len(dir) < len(folder) {
			return false
		}
	}
}

// usable gives the digest of a folder that has all that an entry starts with.
func usable(folder string, m *manifest) (string, bool) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", false
	}
	defer root.Close()
	if len(checkEntries(root, m, "", true)) > 0 {
		return "", false
	}
	digest, err := Digest(folder)
	return digest, err == nil
}
