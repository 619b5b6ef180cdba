package config

import (
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"openskill/host/agent/llm"
	"openskill/host/dispatch/grants"
	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// check refuses what is well-formed and still wrong, and makes paths absolute.
func (l *loader) check(s *Settings) {
	l.folders(s)
	l.authentication(s)
	for _, v := range []struct {
		name  string
		check func() error
	}{
		{"OPENSKILL_LISTEN", func() error { _, err := address(s.Listen); return err }},
		{"OPENSKILL_ADMIN_LISTEN", func() error { return adminAddress(s.AdminListen) }},
		{"OPENSKILL_HTTP_BASE_URL", func() error { return baseURL(s.HTTPBaseURL) }},
		{"OPENSKILL_HTTP_ORIGINS", func() error { _, err := parseOrigins(s.HTTPOrigins); return err }},
		{"OPENSKILL_WEBHOOKS", func() error {
			if s.Webhooks == "public" {
				return nil
			}
			_, err := parseOrigins(s.Webhooks)
			return err
		}},
		{"OPENSKILL_TRUSTED_PROXIES", func() error { return proxies(s.TrustedProxies) }},
		{"OPENSKILL_ANONYMOUS_SCOPES", func() error { return knownScopes(s.Anonymous()) }},
		{"OPENSKILL_JWT_CLAIMS", func() error { _, err := parseClaims(s.JWTClaims); return err }},
		{"OPENSKILL_JWT_ROLES", func() error { _, err := parseRoles(s.JWTRoles); return err }},
		{"OPENSKILL_PULL_HOSTS", func() error { return pulls(s) }},
		{"OPENSKILL_PROVIDERS.openai.base", func() error { return endpoint(s.OpenAIBase) }},
		{"OPENSKILL_PROVIDERS.dashscope.base", func() error { return endpoint(s.DashScopeBase) }},
		{"OPENSKILL_PROVIDERS.deepseek.base", func() error { return endpoint(s.DeepSeekBase) }},
		{"OPENSKILL_PROVIDERS.anthropic.base", func() error { return endpoint(s.AnthropicBase) }},
		{"OPENSKILL_PROVIDERS.llm-service.base", func() error { return endpoint(s.LLMServiceURL) }},
		{"OPENSKILL_AGENT_PROVIDER.all", func() error { return s.configured(s.AgentProvider) }},
		{"OPENSKILL_AGENT_PROVIDER.fast", func() error { return s.configured(s.AgentFast) }},
		{"OPENSKILL_AGENT_PROVIDER.reasoning", func() error { return s.configured(s.AgentReasoning) }},
		{"OPENSKILL_AGENT_MODELS", s.models},
		{"OPENSKILL_TASK_KINDS", func() error { _, err := s.parseKinds(); return err }},
	} {
		if err := v.check(); err != nil {
			l.wrong(v.name, err.Error())
		}
	}
	var err error
	if s.prices, err = llm.ParsePrices(s.AgentPrices); err != nil {
		l.wrong("OPENSKILL_AGENT_PRICES", "has an entry that cannot be read")
	}
	l.allowances(s)
	l.pairs(s)
}

// pairs holds each default to its maximum.
func (l *loader) pairs(s *Settings) {
	v := reflect.ValueOf(s).Elem()
	number := func(f field) uint64 {
		if to := v.Field(f.index); to.CanUint() {
			return to.Uint()
		}
		return uint64(v.Field(f.index).Int()) // not negative by its range
	}
	hold := func(def, most field) {
		have, bound := number(def), number(most)
		switch {
		case have <= bound || l.told[def.name()] || l.told[most.name()]:
		case l.values[def.name()].source == FromDefault:
			// Whoever lowers a maximum below a default that nobody chose means the maximum.
			v.Field(def.index).Set(v.Field(most.index))
		default:
			l.report("%s (from %s) is %d: more than its maximum (from %s), which is %d; accepted: at most that",
				def.label(), l.values[def.name()].where, have, l.values[most.name()].where, bound)
		}
	}
	for _, row := range table() {
		if row.pair() {
			hold(row.parts[0], row.parts[1])
		}
	}
	hold(fieldOf("OPENSKILL_CONCURRENCY.skill"), fieldOf("OPENSKILL_CONCURRENCY.all"))
	hold(fieldOf("OPENSKILL_AGENT_LIMITS.timeout_s"), fieldOf("OPENSKILL_AGENT_LIMITS.max_timeout_s"))
}

// address splits host:port.
func address(text string) (host string, err error) {
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || strconv.FormatUint(n, 10) != port {
		return "", errors.New("is no address")
	}
	return host, nil
}

// adminAddress must not be reachable from other machines.
func adminAddress(text string) error {
	if text == "" {
		return nil
	}
	host, err := address(text)
	if err == nil && !loopback(host) {
		err = errors.New("is reachable from other machines, which must not look into a host")
	}
	return err
}

func baseURL(text string) error {
	if _, path, err := skill.ParseHTTPOrigin(text); err != nil || strings.ContainsAny(path, "?#") {
		return errors.New("is no such address")
	}
	return nil
}

func proxies(text string) error {
	if _, err := parseProxies(text); err != nil {
		return errors.New("has an entry that is no address and no prefix")
	}
	return nil
}

// endpoint is the address of a provider of models.
func endpoint(text string) error {
	u, err := url.Parse(text)
	if text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return errors.New("must be an address without user, query and fragment")
	}
	return nil
}

func knownScopes(scopes []string) error {
	for _, scope := range scopes {
		if !skill.ValidScope(scope) {
			return errors.New("names an unknown scope: " + safeyaml.Quote(scope))
		}
	}
	return nil
}

// hostWithPort is a host as references of OCI have it.
var hostWithPort = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func pulls(s *Settings) error {
	hosts := s.PullsFrom()
	for _, h := range hosts {
		if !hostWithPort.MatchString(h) {
			return errors.New("has something that is no host with a port, like registry.example.com or localhost:5000")
		}
	}
	if len(hosts) > 0 && s.TrustPolicy == "" {
		return errors.New("needs OPENSKILL_TRUST_POLICY, which says whose skills are accepted")
	}
	return nil
}

// authentication settles who may call. Nobody but the operator can reach a host on
// loopback; on every other address callers must show who they are.
func (l *loader) authentication(s *Settings) {
	host, _ := address(s.Listen)
	switch local := s.Local(); {
	case s.Auth == "" && local:
		s.Auth = AuthNone
	case s.Auth == "":
		s.Auth = AuthRequired
	case s.Auth == AuthNone && !local && host != "" || s.Auth == AuthNone && strings.HasPrefix(s.Listen, ":"):
		l.wrong("OPENSKILL_LISTEN", "is reachable from other machines, where OPENSKILL_AUTH must not be none")
	}
	l.tokens(s)
	slices.Sort(l.problems)
}

// allowances reads what skills may ask for. A problem is told without the value,
// which may hold a secret.
func (l *loader) allowances(s *Settings) {
	allowed, http, env, data := grants.Parse(s.HTTPAllow, s.EnvAllow, s.DataAllow, func(name string) (string, bool) {
		v, ok := l.host[name]
		return v, ok
	})
	for name, err := range map[string]error{"OPENSKILL_HTTP_ALLOW": http, "OPENSKILL_ENV_ALLOW": env, "OPENSKILL_DATA_ALLOW": data} {
		if err != nil {
			l.refuse(name, l.values[name], find(name).Accepts, true, err.Error())
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
	for _, setting := range table() {
		row := setting.parts[0]
		if row.path == "" {
			continue
		}
		f := v.Field(row.index)
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
		case row.path == "file" && errors.Is(err, fs.ErrNotExist) && given == row.def:
			f.SetString("") // it need not be there
		case row.path == "file":
			if err != nil || !info.Mode().IsRegular() {
				l.wrong(row.env, "is not a file that can be read")
			}
		case errors.Is(err, fs.ErrNotExist):
			if row.path == "dir" && l.values[row.env].source != FromDefault {
				l.wrong(row.env, "does not exist")
			}
		case err != nil:
			l.wrong(row.env, "cannot be read")
		case !info.IsDir():
			l.wrong(row.env, "is not a folder")
		}
	}
	l.agentSkills(s)
	if within(s.StateDir, s.DataRoot) {
		l.wrong("OPENSKILL_STATE_DIR", "is in the data folder, where skills could read it")
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

// agentSkills makes the folders of Agent Skills absolute; each one must be there.
func (l *loader) agentSkills(s *Settings) {
	list := s.AgentSkillsDirs()
	for i, path := range list {
		if path == "" {
			l.wrong("OPENSKILL_AGENT_SKILLS", "has an empty entry")
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.dir, path)
		}
		list[i] = filepath.Clean(path)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			l.wrong("OPENSKILL_AGENT_SKILLS", "has an entry that is no folder")
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
		l.wrong("OPENSKILL_AGENT_SKILLS_NATIVE", "is not one of the folders of Agent Skills")
	}
}
