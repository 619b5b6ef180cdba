package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/joho/godotenv"
	"gopkg.in/yaml.v3"

	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// Sources are what settings are read from.
type Sources struct {
	Flags   map[string]string // by name without dashes; only the flags that were given
	Environ []string          // as os.Environ gives it
	Dir     string            // where .env and openskill.yaml are looked for, and what relative paths are relative to; "" for the working folder
	File    string            // the file of settings; "" for openskill.yaml in Dir, which need not exist
}

// value is a setting, or a part of one, as it was written, and where.
type value struct {
	text   string
	source Source
	where  string // for messages
}

// loader gathers values and every problem.
type loader struct {
	dir      string
	values   map[string]value // by the name of the field
	unknown  []string
	renamed  []Renamed
	files    []string // that were there
	problems []string
	broken   bool              // a file could not be read: what it would have said is not known
	told     map[string]bool   // fields that a problem names already
	host     map[string]string // the host's environment, for what skills may be given of it
}

func (l *loader) report(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// wrong reports the value of a field that is not accepted.
func (l *loader) wrong(name, why string) {
	if l.told[name] {
		return
	}
	l.told[name] = true
	f := fieldOf(name)
	l.refuse(f.label(), l.values[name], f.accepts, f.secret || find(f.env).Secret, why)
}

func (l *loader) refuse(label string, v value, accepts string, secret bool, why string) {
	if secret {
		l.report("%s (from %s): %s; accepted: %s", label, v.where, why, accepts)
		return
	}
	l.report("%s (from %s) is %s: %s; accepted: %s", label, v.where, safeyaml.Quote(v.text), why, accepts)
}

// Load reads and checks all settings. The error is an *skill.Error whose Message
// names every wrong setting with its source and what is accepted, one a line.
func Load(from Sources) (*Settings, error) {
	dir, err := filepath.Abs(from.Dir)
	if err != nil {
		return nil, failure([]string{"the working folder cannot be found"})
	}
	l := &loader{dir: dir, values: map[string]value{}, told: map[string]bool{}, host: map[string]string{}}
	for _, s := range table() {
		for _, f := range s.parts {
			l.values[f.name()] = value{f.def, FromDefault, "the default"}
		}
	}
	l.file(from.File)
	l.dotEnv()
	l.environ(from.Environ)
	l.flags(from.Flags)
	if l.broken {
		return nil, failure(l.problems)
	}
	s := l.parse()
	l.check(s) // a value that cannot be read is its default here, and told of once
	if len(l.problems) > 0 {
		return nil, failure(l.problems)
	}
	return s, nil
}

func failure(problems []string) error {
	return &skill.Error{
		Op: "config.Load", Code: skill.InvalidArgument,
		Message: strings.Join(problems, "\n"), Details: map[string]any{"settings": problems},
	}
}

// set overlays the value of a field; an empty one counts as not given.
func (l *loader) set(f field, text string, source Source, where string) {
	if text != "" {
		l.values[f.name()] = value{text, source, where}
	}
}

// given is one entry of a source: a text, or texts by the names of parts.
type given struct {
	name  string // in the environment
	text  string
	parts map[string]string
	where string
}

// overlay takes the entries of one source. Old names come first and shorthands last: what is
// said by the present name holds, and the narrower name of two.
func (l *loader) overlay(list []given, source Source) {
	slices.SortFunc(list, func(a, b given) int {
		return cmp.Or(cmp.Compare(targets()[a.name].rank, targets()[b.name].rank), cmp.Compare(a.name, b.name))
	})
	for _, g := range list {
		switch to := targets()[g.name]; {
		case to.setting != nil:
			l.group(to.setting, g, source)
		case to.field.env != "":
			l.set(to.field, g.text, source, g.where)
		case g.text != "":
			l.old(g, source)
		}
	}
}

// group overlays the parts of a setting that an entry has.
func (l *loader) group(s *Setting, g given, source Source) {
	parts := g.parts
	if parts == nil && g.text != "" {
		var ok bool
		if parts, ok = s.split(g.text); !ok {
			l.refuse(s.Env, value{g.text, source, g.where}, s.Accepts, s.Secret, "has a part without a known name")
		}
	}
	for _, f := range s.parts {
		l.set(f, parts[f.part], source, g.where)
	}
}

// old overlays what an old name says, and remembers that it was used.
func (l *loader) old(g given, source Source) {
	o := oldNames[g.name]
	r := Renamed{Old: g.name, Where: g.where, Why: o.fixed}
	if o.now != "" {
		if o.value != nil {
			g.text = o.value(g.text)
		}
		f := fieldOf(o.now)
		l.set(f, g.text, source, g.where)
		r.Now = f.env + "=" + find(f.env).join(func(p field) string {
			if p.part != f.part {
				return ""
			}
			return g.text
		})
	}
	l.renamed = append(l.renamed, r)
}

func (l *loader) file(name string) {
	shown, optional := name, name == ""
	if optional {
		shown = "openskill.yaml"
		name = filepath.Join(l.dir, shown)
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(l.dir, name)
	}
	src, err := readSmall(name)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.broken = true
		l.report("%s cannot be read: %s", shown, plain(err))
		return
	}
	l.files = append(l.files, name)
	if saysNothing(src) {
		return
	}
	root, problems := safeyaml.Parse(src)
	for _, p := range problems {
		l.report("%s:%d: %s", shown, p.Line, p.Message)
	}
	if root == nil {
		l.broken = len(problems) > 0
		return
	}
	if root.Kind != yaml.MappingNode {
		l.broken = true
		l.report("%s:%d: the file must be a map of settings and values", shown, root.Line)
		return
	}
	var list []given
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		g := given{name: byKey()[k.Value], where: fmt.Sprintf("%s:%d", shown, k.Line)}
		switch s := targets()[g.name].setting; {
		case g.name == "":
			l.report("%s: the setting %s is not known; accepted are %s", g.where, safeyaml.Quote(k.Value), strings.Join(keys(), ", "))
		case v.ShortTag() == "!!null":
		case v.Kind == yaml.ScalarNode:
			g.text = v.Value
			list = append(list, g)
		case v.Kind == yaml.MappingNode && s != nil && s.parts[0].part != "":
			g.parts = map[string]string{}
			l.parts(s, "", v, g)
			list = append(list, g)
		default:
			l.report("%s: %s must be a single value; accepted: %s", g.where, k.Value, targets()[g.name].accepts())
		}
	}
	l.overlay(list, FromFile)
}

// parts reads a map of the file, whose keys are names of parts, or of what these have before a
// dot.
func (l *loader) parts(s *Setting, before string, node *yaml.Node, g given) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, v := before+node.Content[i].Value, node.Content[i+1]
		known := slices.ContainsFunc(s.parts, func(f field) bool { return f.part == name || strings.HasPrefix(f.part, name+".") })
		switch {
		case !known:
			l.report("%s: %s has no part %s; accepted: %s", g.where, s.Key, safeyaml.Quote(name), s.Accepts)
		case v.Kind == yaml.MappingNode:
			l.parts(s, name+".", v, g)
		case v.Kind == yaml.ScalarNode && v.ShortTag() != "!!null":
			g.parts[name] = v.Value
		}
	}
}

// saysNothing reports whether a file has comments alone, as a sample has.
func saysNothing(src []byte) bool {
	for line := range bytes.Lines(src) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

func (l *loader) dotEnv() {
	src, err := readSmall(filepath.Join(l.dir, ".env"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var values map[string]string
	if err == nil {
		l.files = append(l.files, filepath.Join(l.dir, ".env"))
		// Names in a value ($OTHER) are those of the file, never of the process.
		values, err = godotenv.UnmarshalBytes(src)
	}
	if err != nil {
		// The text of a syntax error repeats the line, which may hold a secret.
		l.broken = true
		l.report(".env cannot be read: each line must be NAME=value")
		return
	}
	l.variables(values, FromDotEnv, ".env")
}

func (l *loader) environ(list []string) {
	for _, e := range list {
		if name, text, ok := strings.Cut(e, "="); ok {
			l.host[name] = text
		}
	}
	l.variables(l.host, FromEnv, "the environment")
}

func (l *loader) variables(values map[string]string, source Source, where string) {
	var list []given
	for name, text := range values {
		if _, known := targets()[name]; known {
			list = append(list, given{name: name, text: text, where: where})
		} else if strings.HasPrefix(name, prefix) {
			l.unknown = append(l.unknown, fmt.Sprintf("%s (from %s)", safeyaml.Quote(name), where))
		}
	}
	slices.Sort(l.unknown)
	l.overlay(list, source)
}

func (l *loader) flags(flags map[string]string) {
	var list []given
	for flag, text := range flags {
		name := byFlag()[flag]
		if name == "" {
			l.report("the flag --%s is no setting", flag)
			continue
		}
		list = append(list, given{name: name, text: text, where: "the flag --" + flag})
	}
	slices.Sort(l.problems)
	l.overlay(list, FromFlag)
}

// parse turns the values into Settings. What cannot be read is reported, and its
// default taken, so that what else is wrong can be found.
func (l *loader) parse() *Settings {
	s := &Settings{origins: map[string]Source{}, places: map[string]string{}, unknown: l.unknown, renamed: l.renamed, files: l.files}
	to := reflect.ValueOf(s).Elem()
	for _, row := range table() {
		from := FromDefault
		var places []string
		for _, f := range row.parts {
			v := l.values[f.name()]
			if why := f.read(to.Field(f.index), v.text); why != "" {
				l.wrong(f.name(), why)
				_ = f.read(to.Field(f.index), f.def)
			}
			s.origins[f.name()] = v.source
			if v.source == FromDefault {
				continue
			}
			if slices.Index(sources, v.source) < slices.Index(sources, from) {
				from = v.source
			}
			if !slices.Contains(places, v.where) {
				places = append(places, v.where)
			}
		}
		s.origins[row.Env], s.places[row.Env] = from, cmp.Or(strings.Join(places, ", "), "the default")
	}
	return s
}

// read sets a field of [Settings] to a text, and says what is wrong with it.
func (f field) read(to reflect.Value, text string) (why string) {
	if text == "" {
		to.SetZero()
		return ""
	}
	var err error
	switch to.Kind() {
	case reflect.String:
		if len(f.oneof) > 0 && !slices.Contains(f.oneof, text) {
			return "is not known"
		}
		to.SetString(text)
		return ""
	case reflect.Bool:
		var is bool
		is, err = strconv.ParseBool(text)
		to.SetBool(is)
	case reflect.Float64:
		var n float64
		n, err = strconv.ParseFloat(text, 64)
		if err == nil && !(n >= 0 && n <= 1) {
			return "is out of range"
		}
		to.SetFloat(n)
	default:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 64)
		if errors.Is(err, strconv.ErrRange) || err == nil && (n < f.min || n > f.max) || strings.HasPrefix(text, "-") {
			return "is out of range"
		}
		if to.CanUint() {
			to.SetUint(n)
		} else {
			to.SetInt(int64(n)) // in its range
		}
	}
	if err != nil {
		return "cannot be read"
	}
	return ""
}

// readSmall reads a regular file of the size that settings have.
func readSmall(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, safeyaml.MaxBytes+1))
	if err == nil && len(b) > safeyaml.MaxBytes {
		err = fmt.Errorf("it has more than %d bytes", safeyaml.MaxBytes)
	}
	return b, err
}

func plain(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
