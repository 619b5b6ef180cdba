package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
	"github.com/joho/godotenv"
	"gopkg.in/yaml.v3"

	"openskill/host/catalogue/manifest/safeyaml"
	"openskill/host/dispatch/grants"
	"openskill/sdk/skill"
)

// Sources are what settings are read from.
type Sources struct {
	Flags   map[string]string // by name without dashes; only the flags that were given
	Environ []string          // as os.Environ gives it
	Dir     string            // where .env and openskill.yaml are looked for, and what relative paths are relative to; "" for the working folder
	File    string            // the file of settings; "" for openskill.yaml in Dir, which need not exist
}

// value is a setting as it was written, and where.
type value struct {
	text   string
	source Source
	where  string // for messages
}

// loader gathers values and every problem.
type loader struct {
	dir      string
	table    []Setting
	values   map[string]value // by name in the environment
	unknown  []string
	files    []string // that were there
	problems []string
	broken   bool              // a file could not be read: what it would have said is not known
	told     map[string]bool   // settings that a problem names already
	host     map[string]string // the host's environment, for what skills may be given of it
}

func (l *loader) report(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// wrong reports a value that is not accepted.
func (l *loader) wrong(s Setting, why string) {
	if l.told[s.Env] {
		return
	}
	l.told[s.Env] = true
	v := l.values[s.Env]
	if s.Secret {
		l.report("%s (from %s): %s; accepted: %s", s.Env, v.where, why, s.Accepts)
		return
	}
	l.report("%s (from %s) is %s: %s; accepted: %s", s.Env, v.where, safeyaml.Quote(v.text), why, s.Accepts)
}

// Load reads and checks all settings. The error is an *skill.Error whose Message
// names every wrong setting with its source and what is accepted, one a line.
func Load(from Sources) (*Settings, error) {
	dir, err := filepath.Abs(from.Dir)
	if err != nil {
		return nil, failure([]string{"the working folder cannot be found"})
	}
	l := &loader{dir: dir, table: Table(), values: map[string]value{}, told: map[string]bool{}, host: map[string]string{}}
	for _, s := range l.table {
		l.values[s.Env] = value{s.Default, FromDefault, "the default"}
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

// set overlays one value; an empty one counts as not given.
func (l *loader) set(name, text string, source Source, where string) {
	if text != "" {
		l.values[name] = value{text, source, where}
	}
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
	byKey := map[string]Setting{}
	var keys []string
	for _, s := range l.table {
		byKey[s.Key] = s
		keys = append(keys, s.Key)
	}
	slices.Sort(keys)
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		where := fmt.Sprintf("%s:%d", shown, k.Line)
		s, known := byKey[k.Value]
		switch {
		case !known:
			l.report("%s: the setting %s is not known; accepted are %s", where, safeyaml.Quote(k.Value), strings.Join(keys, ", "))
		case v.Kind != yaml.ScalarNode:
			l.report("%s: %s must be a single value; accepted: %s", where, k.Value, s.Accepts)
		case v.ShortTag() != "!!null":
			l.set(s.Env, v.Value, FromFile, where)
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
	l.overlay(values, FromDotEnv, ".env")
}

func (l *loader) environ(list []string) {
	values := make(map[string]string, len(list))
	for _, e := range list {
		if name, text, ok := strings.Cut(e, "="); ok {
			values[name] = text
		}
	}
	l.host = values
	l.overlay(values, FromEnv, "the environment")
}

func (l *loader) overlay(values map[string]string, source Source, where string) {
	for name, text := range values {
		if _, known := l.values[name]; !known {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			l.unknown = append(l.unknown, fmt.Sprintf("%s (from %s)", safeyaml.Quote(name), where))
			continue
		}
		l.set(name, text, source, where)
	}
	slices.Sort(l.unknown)
}

func (l *loader) flags(flags map[string]string) {
	byFlag := map[string]Setting{}
	for _, s := range l.table {
		byFlag[s.Flag] = s
	}
	for name, text := range flags {
		s, known := byFlag[name]
		if !known {
			l.report("the flag --%s is no setting", name)
			continue
		}
		l.set(s.Env, text, FromFlag, "the flag --"+name)
	}
	slices.Sort(l.problems)
}

// parse turns the values into Settings. What cannot be read is reported, and its
// default taken, so that what else is wrong can be found.
func (l *loader) parse() *Settings {
	s := &Settings{origins: map[string]Source{}, places: map[string]string{}, unknown: l.unknown, files: l.files}
	merged := make(map[string]string, len(l.values))
	for name, v := range l.values {
		merged[name], s.origins[name], s.places[name] = v.text, v.source, v.where
	}
	byField := map[string]Setting{}
	for _, row := range l.table {
		byField[row.field] = row
	}
	for range 2 {
		err := env.ParseWithOptions(s, env.Options{Environment: merged})
		var all env.AggregateError
		if !errors.As(err, &all) {
			if err != nil {
				l.report("the settings cannot be read: %v", err)
			}
			break
		}
		for _, e := range all.Errors {
			var pe env.ParseError
			if errors.As(e, &pe) {
				row := byField[pe.Name]
				l.wrong(row, "cannot be read")
				merged[row.Env] = row.Default
				continue
			}
			l.report("a setting cannot be read: %v", e)
		}
	}
	return s
}

// check refuses what is well-formed and still wrong, and makes paths absolute.
func (l *loader) check(s *Settings) {
	l.ranges(s)
	l.addresses(s)
	l.observing(s)
	l.folders(s)
	l.allowances(s)
	l.pulls(s)
	l.agent(s)
	for _, pair := range []struct {
		def, most       string
		defValue, value uint64
	}{
		{"OPENSKILL_TIMEOUT_MS", "OPENSKILL_MAX_TIMEOUT_MS", s.TimeoutMS, s.MaxTimeoutMS},
		{"OPENSKILL_MEMORY_MB", "OPENSKILL_MAX_MEMORY_MB", s.MemoryMB, s.MaxMemoryMB},
		{"OPENSKILL_FUEL", "OPENSKILL_MAX_FUEL", s.Fuel, s.MaxFuel},
		{"OPENSKILL_OUTPUT_KB", "OPENSKILL_MAX_OUTPUT_KB", s.OutputKB, s.MaxOutputKB},
		{"OPENSKILL_SCRATCH_MB", "OPENSKILL_MAX_SCRATCH_MB", s.ScratchMB, s.MaxScratchMB},
		{"OPENSKILL_CONCURRENCY_PER_SKILL", "OPENSKILL_CONCURRENCY", uint64(s.ConcurrencyPerSkill), uint64(s.Concurrency)},
	} {
		if pair.defValue <= pair.value || l.told[pair.def] || l.told[pair.most] {
			continue
		}
		// Whoever lowers a cap below a default that nobody chose means the cap.
		if l.values[pair.def].source == FromDefault {
			l.lower(s, pair.def, pair.value)
			continue
		}
		l.report("%s (from %s) is %d: more than %s (from %s), which is %d; accepted: at most that",
			pair.def, l.values[pair.def].where, pair.defValue, pair.most, l.values[pair.most].where, pair.value)
	}
}

// lower sets a numeric setting to n.
func (l *loader) lower(s *Settings, name string, n uint64) {
	i := slices.IndexFunc(l.table, func(r Setting) bool { return r.Env == name })
	f := reflect.ValueOf(s).Elem().FieldByName(l.table[i].field)
	if f.CanUint() {
		f.SetUint(n)
		return
	}
	f.SetInt(int64(n))
}

func (l *loader) ranges(s *Settings) {
	v := reflect.ValueOf(s).Elem()
	for _, row := range l.table {
		f, _ := v.Type().FieldByName(row.field)
		low, err := strconv.ParseUint(f.Tag.Get("min"), 10, 64)
		if err != nil {
			continue // no number
		}
		high, _ := strconv.ParseUint(f.Tag.Get("max"), 10, 64)
		var n uint64
		field := v.FieldByName(row.field)
		if field.CanUint() {
			n = field.Uint()
		} else if i := field.Int(); i > 0 {
			n = uint64(i)
		}
		if n < low || n > high {
			l.wrong(row, "is out of range")
		}
	}
}

func (l *loader) row(name string) Setting {
	return l.table[slices.IndexFunc(l.table, func(r Setting) bool { return r.Env == name })]
}

// agentSkills makes the folders of Agent Skills absolute; each one must be there.
func (l *loader) agentSkills(s *Settings) {
	list := s.AgentSkillsDirs()
	row := l.row("OPENSKILL_AGENT_SKILLS")
	for i, path := range list {
		if path == "" {
			l.wrong(row, "has an empty entry")
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.dir, path)
		}
		list[i] = filepath.Clean(path)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			l.wrong(row, "has an entry that is no folder")
		}
	}
	s.AgentSkills = strings.Join(list, string(filepath.ListSeparator))
	if s.AgentNative == "" {
		return
	}
	if !filepath.IsAbs(s.AgentNative) {
		s.AgentNative = filepath.Join(l.dir, s.AgentNative)
	}
	s.AgentNative = filepath.Clean(s.AgentNative)
	if list == nil {
		list = []string{s.SkillsDir}
	}
	if !slices.Contains(list, s.AgentNative) {
		l.wrong(l.row("OPENSKILL_AGENT_SKILLS_NATIVE"), "is none of the folders of Agent Skills")
	}
}

func (l *loader) addresses(s *Settings) {
	host, port, err := net.SplitHostPort(s.Listen)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || strconv.FormatUint(n, 10) != port {
		l.wrong(l.row("OPENSKILL_LISTEN"), "is no address")
	}
	l.authentication(s, loopback(host))
	switch s.Workers {
	case PerTenant, PerSkill, Shared, NoWorkers:
	default:
		l.wrong(l.row("OPENSKILL_WORKERS"), "is not known")
	}
	switch s.ScriptApproval {
	case ApproveNever, ApproveVersion, ApproveCall:
	default:
		l.wrong(l.row("OPENSKILL_SCRIPT_APPROVAL"), "is not known")
	}
	if _, path, err := skill.ParseHTTPOrigin(s.HTTPBaseURL); err != nil || strings.ContainsAny(path, "?#") {
		l.wrong(l.row("OPENSKILL_HTTP_BASE_URL"), "is no such address")
	}
	if _, err := parseOrigins(s.HTTPOrigins); err != nil {
		l.wrong(l.row("OPENSKILL_HTTP_ORIGINS"), err.Error())
	}
	if _, err := parseProxies(s.TrustedProxies); err != nil {
		l.wrong(l.row("OPENSKILL_TRUSTED_PROXIES"), "has an entry that is no address and no prefix")
	}
}

// authentication settles who may call. Nobody but the operator can reach a host on
// loopback; on every other address callers must show who they are.
func (l *loader) authentication(s *Settings, local bool) {
	switch s.Auth {
	case "":
		s.Auth = AuthRequired
		if local {
			s.Auth = AuthNone
		}
	case AuthNone:
		if !local {
			l.wrong(l.row("OPENSKILL_LISTEN"), "is reachable from other machines, where OPENSKILL_AUTH must not be none")
		}
	case AuthRequired:
	default:
		l.wrong(l.row("OPENSKILL_AUTH"), "is not known")
	}
	l.tokens(s)
	for _, scope := range s.Anonymous() {
		if !skill.ValidScope(scope) {
			l.wrong(l.row("OPENSKILL_ANONYMOUS_SCOPES"), "names a scope that there is not: "+safeyaml.Quote(scope))
		}
	}
	switch s.AuditPayload {
	case PayloadNone, PayloadHash, PayloadRedacted, PayloadFull:
	default:
		l.wrong(l.row("OPENSKILL_AUDIT_PAYLOAD"), "is not known")
	}
	switch s.KeepLogs {
	case LogsNone, LogsFailed, LogsAll:
	default:
		l.wrong(l.row("OPENSKILL_KEEP_LOGS"), "is not known")
	}
	switch s.Record {
	case RecordOff, RecordOn:
	default:
		l.wrong(l.row("OPENSKILL_RECORD"), "is not known")
	}
	slices.Sort(l.problems)
}

// minSecret is the length, in bytes, below which a secret is not one: HS256 wants a
// key of at least the size of its hash (RFC 7518, section 3.2).
const minSecret = 32

// allowances reads what skills may ask for. A problem is told without the value,
// which may hold a secret.
// hostWithPort is a host as references of OCI have it.
var hostWithPort = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func (l *loader) pulls(s *Settings) {
	hosts := s.PullsFrom()
	row := l.row("OPENSKILL_PULL_HOSTS")
	for _, h := range hosts {
		if !hostWithPort.MatchString(h) {
			l.wrong(row, "has something that is no host with a port, like registry.example.com or localhost:5000")
			return
		}
	}
	if len(hosts) > 0 && s.TrustPolicy == "" {
		l.wrong(row, "needs OPENSKILL_TRUST_POLICY beside it, which says whose skills are accepted")
	}
}

func (l *loader) allowances(s *Settings) {
	allowed, http, env, data := grants.Parse(s.HTTPAllow, s.EnvAllow, s.DataAllow, func(name string) (string, bool) {
		v, ok := l.host[name]
		return v, ok
	})
	for name, err := range map[string]error{"OPENSKILL_HTTP_ALLOW": http, "OPENSKILL_ENV_ALLOW": env, "OPENSKILL_DATA_ALLOW": data} {
		if err != nil {
			l.report("%s (from %s): %v; accepted: %s", name, l.values[name].where, err, l.row(name).Accepts)
		}
	}
	slices.Sort(l.problems)
	s.allowed = allowed
}

// loopback reports whether only this machine reaches the host. A name other than
// localhost is not asked for: what it means can change.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (l *loader) folders(s *Settings) {
	v := reflect.ValueOf(s).Elem()
	for _, row := range l.table {
		if row.path == "" {
			continue
		}
		f := v.FieldByName(row.field)
		path, given := f.String(), f.String()
		if row.path == "file" && path == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.dir, path)
		}
		f.SetString(filepath.Clean(path))
		info, err := os.Stat(path)
		switch {
		case row.path == "file" && errors.Is(err, fs.ErrNotExist) && given == row.Default:
			f.SetString("") // it need not be there
		case row.path == "file":
			if err != nil || !info.Mode().IsRegular() {
				l.wrong(row, "is not a file that can be read")
			}
		case errors.Is(err, fs.ErrNotExist):
			if row.path == "dir" && l.values[row.Env].source != FromDefault {
				l.wrong(row, "does not exist")
			}
		case err != nil:
			l.wrong(row, "cannot be read")
		case !info.IsDir():
			l.wrong(row, "is not a folder")
		}
	}
	l.agentSkills(s)
	if within(s.StateDir, s.DataRoot) {
		l.wrong(l.row("OPENSKILL_STATE_DIR"), "is in the data folder, where skills could read it")
	}
	if _, err := os.Stat(s.DataRoot); errors.Is(err, fs.ErrNotExist) {
		s.DataRoot = "" // only the default gets here: no data folder, nothing to grant
	}
}

// within reports whether path is folder or below it, behind symbolic links.
func within(path, folder string) bool {
	rel, err := filepath.Rel(behindLinks(folder), behindLinks(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// behindLinks resolves the part of path that exists.
func behindLinks(path string) string {
	rest := ""
	for p := path; ; p = filepath.Dir(p) {
		if target, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(target, rest)
		}
		if p == filepath.Dir(p) {
			return path
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
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
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
