package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	s := musttest.Get(Load(Sources{Dir: dir}))(t)
	if s.Listen != "127.0.0.1:8000" || s.Auth != AuthNone || s.Debug {
		t.Errorf("listen %q, auth %q, debug %v", s.Listen, s.Auth, s.Debug)
	}
	if want := filepath.Join(dir, "skills"); s.SkillsDir != want {
		t.Errorf("skills folder %q, want %q", s.SkillsDir, want)
	}
	if s.DataRoot != "" {
		t.Errorf("a data folder that does not exist is granted: %q", s.DataRoot)
	}
	for name, l := range map[string]skill.Limits{"defaults": s.Defaults(), "caps": s.Caps()} {
		if unset := l.Unset(); unset != "" {
			t.Errorf("%s lack %s: %+v", name, unset, l)
		}
	}
	if timeout := s.Defaults().Timeout; timeout != 15*time.Second || s.MaxBody() != 1<<20 {
		t.Errorf("timeout %v, body %d", timeout, s.MaxBody())
	}
	if got := s.Origin("OPENSKILL_LISTEN"); got != FromDefault {
		t.Errorf("origin %q", got)
	}
}

// TestPrecedence sets one setting in ever higher sources and watches it win.
func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	from := Sources{Dir: dir}
	check := func(want uint64, origin Source) {
		t.Helper()
		s := musttest.Get(Load(from))(t)
		if s.TimeoutMS != want || s.Origin("OPENSKILL_TIMEOUT_MS") != origin {
			t.Errorf("timeout %d from %s, want %d from %s", s.TimeoutMS, s.Origin("OPENSKILL_TIMEOUT_MS"), want, origin)
		}
	}
	check(15000, FromDefault)
	musttest.Write(t, filepath.Join(dir, "openskill.yaml"), "timeout_ms: 1\n")
	check(1, FromFile)
	musttest.Write(t, filepath.Join(dir, ".env"), "OPENSKILL_TIMEOUT_MS=2\nOPENAI_API_KEY=sk-1\n")
	check(2, FromDotEnv)
	from.Environ = []string{"OPENSKILL_TIMEOUT_MS=3"}
	check(3, FromEnv)
	from.Flags = map[string]string{"timeout-ms": "4"}
	check(4, FromFlag)
	from.Flags["timeout-ms"] = "" // not given
	check(3, FromEnv)
	if v, set := os.LookupEnv("OPENAI_API_KEY"); set && v == "sk-1" {
		t.Error("a key of .env entered the environment of the process")
	}
}

func TestOtherFile(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "host.yaml"), "listen: localhost:0\ndebug: true\nconcurrency: 4\n")
	s := musttest.Get(Load(Sources{Dir: dir, File: "host.yaml"}))(t)
	if s.Listen != "localhost:0" || !s.Debug || s.Concurrency != 4 {
		t.Errorf("got %+v", s)
	}
	if s.ConcurrencyPerSkill != 4 {
		t.Errorf("per skill %d: a default must follow a lower cap", s.ConcurrencyPerSkill)
	}
}

func TestUnknownNamesOfTheEnvironmentAreTold(t *testing.T) {
	s := musttest.Get(Load(Sources{Dir: t.TempDir(), Environ: []string{"OPENSKILL_TIMEOUT=3", "PATH=/bin"}}))(t)
	if diff := cmp.Diff([]string{`"OPENSKILL_TIMEOUT" (from the environment)`}, s.Unknown()); diff != "" {
		t.Error(diff)
	}
}

// TestRefused has one row for every way in which a start is stopped; each message
// must name the setting, its source and what is accepted.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "file"), "x")
	musttest.Write(t, filepath.Join(dir, "data", "a.txt"), "x")
	for name, c := range map[string]struct {
		env, file, dotenv, flag string // NAME=value, two texts, name=value
		want                    []string
	}{
		"not a number":         {env: "OPENSKILL_TIMEOUT_MS=soon", want: []string{"OPENSKILL_TIMEOUT_MS", "the environment", `"soon"`, "a whole number from 1 to 86400000"}},
		"zero":                 {env: "OPENSKILL_TIMEOUT_MS=0", want: []string{"OPENSKILL_TIMEOUT_MS", "out of range"}},
		"negative":             {flag: "concurrency=all:-1", want: []string{"OPENSKILL_CONCURRENCY", "the flag --concurrency", "from 1 to 4096"}},
		"too large":            {env: "OPENSKILL_MEMORY_MB=4097", want: []string{"OPENSKILL_MEMORY_MB", "out of range"}},
		"over 2 GiB":           {env: "OPENSKILL_MEMORY_MB=2049", want: []string{"OPENSKILL_MEMORY_MB", "from 1 to 2048"}},
		"cap over 2 GiB":       {env: "OPENSKILL_MEMORY_MB=/2049", want: []string{"OPENSKILL_MEMORY_MB max", "from 1 to 2048"}},
		"default over cap":     {env: "OPENSKILL_MEMORY_MB=2048", want: []string{"OPENSKILL_MEMORY_MB", "more than its maximum (from the default)"}},
		"debug":                {dotenv: "OPENSKILL_DEBUG=perhaps\n", want: []string{"OPENSKILL_DEBUG", ".env", "0 or 1"}},
		"listen nowhere":       {flag: "listen=8000", want: []string{"OPENSKILL_LISTEN", "--listen", "host:port"}},
		"listen on a bad port": {flag: "listen=127.0.0.1:65536", want: []string{"OPENSKILL_LISTEN"}},
		"listen everywhere":    {flag: "listen=0.0.0.0:8000", env: "OPENSKILL_AUTH=none", want: []string{"OPENSKILL_LISTEN", "--listen", "must not be none"}},
		"listen on no host":    {flag: "auth=none", env: "OPENSKILL_LISTEN=:8000", want: []string{"OPENSKILL_LISTEN", "must not be none"}},
		"proxies":              {env: "OPENSKILL_TRUSTED_PROXIES=10.0.0.0/8,proxy.example", want: []string{"OPENSKILL_TRUSTED_PROXIES", "no address"}},
		"an empty proxy":       {flag: "trusted-proxies=10.0.0.1,,::1", want: []string{"OPENSKILL_TRUSTED_PROXIES", "--trusted-proxies"}},
		"listen on a name":     {flag: "auth=none", env: "OPENSKILL_LISTEN=example.com:80", want: []string{"OPENSKILL_LISTEN"}},
		"listen on IPv6":       {flag: "auth=none", env: "OPENSKILL_LISTEN=[::]:80", want: []string{"OPENSKILL_LISTEN", "must not be none"}},
		"auth unknown":         {env: "OPENSKILL_AUTH=off", want: []string{"OPENSKILL_AUTH", "accepted: none"}},
		"a short secret":       {env: "OPENSKILL_JWT_SECRET=hush", want: []string{"OPENSKILL_JWT_SECRET", "has 4 bytes", "32 bytes or more"}},
		"JWTs for anybody":     {env: "OPENSKILL_JWT_JWKS=https://login.example/keys", want: []string{"OPENSKILL_JWT_ISSUER is not set", "OPENSKILL_JWT_AUDIENCE is not set"}},
		"a client of nobody":   {flag: "oidc-client-id=console", env: "OPENSKILL_AUTH=required", want: []string{"OPENSKILL_OIDC_CLIENT_ID", "needs OPENSKILL_JWT_JWKS", "https address"}},
		"no openid":            {flag: "oidc-scopes=profile", want: []string{"OPENSKILL_OIDC_SCOPES", "lacks openid"}},
		"claims of no kind":    {flag: "jwt-claims=tenant=tid; scope=scp", want: []string{"OPENSKILL_JWT_CLAIMS", "--jwt-claims", `"scope=scp"`, "scopes="}},
		"claims without =":     {flag: "jwt-claims=tid", want: []string{"OPENSKILL_JWT_CLAIMS", `"tid"`}},
		"two tenant claims":    {flag: "jwt-claims=tenant=tid,org_id", want: []string{"OPENSKILL_JWT_CLAIMS", "several claims for the tenant"}},
		"claims twice":         {flag: "jwt-claims=scopes=scp;scopes=scope", want: []string{"OPENSKILL_JWT_CLAIMS", `"scopes" twice`}},
		"an empty claim":       {flag: "jwt-claims=scopes=scp,", want: []string{"OPENSKILL_JWT_CLAIMS", "no claim"}},
		"a role without =":     {flag: "jwt-roles=staff", want: []string{"OPENSKILL_JWT_ROLES", `"staff"`, "no ="}},
		"a role of nothing":    {flag: "jwt-roles=staff=", want: []string{"OPENSKILL_JWT_ROLES", "no scope"}},
		"a role without name":  {flag: "jwt-roles==admin", want: []string{"OPENSKILL_JWT_ROLES", "without a role"}},
		"a role twice":         {flag: "jwt-roles=a=admin;a=skills:read", want: []string{"OPENSKILL_JWT_ROLES", `"a" twice`}},
		"a role's own scope":   {flag: "jwt-roles=a=skills:read,all", want: []string{"OPENSKILL_JWT_ROLES", `"all"`, "skills:read"}},
		"an unknown scope":     {env: "OPENSKILL_ANONYMOUS_SCOPES=skills:read,all", want: []string{"OPENSKILL_ANONYMOUS_SCOPES", `"all"`}},
		"payloads":             {env: "OPENSKILL_AUDIT_PAYLOAD=some", want: []string{"OPENSKILL_AUDIT_PAYLOAD", "none, hash, redacted or full"}},
		"record":               {env: "OPENSKILL_RECORD=1", want: []string{"OPENSKILL_RECORD", "off or on"}},
		"base URL":             {env: "OPENSKILL_HTTP_BASE_URL=ftp://x", want: []string{"OPENSKILL_HTTP_BASE_URL", "http or https"}},
		"all origins":          {flag: "http-origins=*", want: []string{"OPENSKILL_HTTP_ORIGINS", "--http-origins", `"*"`, "https://"}},
		"origins of a domain":  {flag: "http-origins=https://*.example.com", want: []string{"OPENSKILL_HTTP_ORIGINS", `"https://*.example.com"`}},
		"origin of files":      {flag: "http-origins=https://a.example,null", want: []string{"OPENSKILL_HTTP_ORIGINS", `"null"`}},
		"origin without TLS":   {flag: "http-origins=http://a.example", want: []string{"OPENSKILL_HTTP_ORIGINS", `"http://a.example"`, "loopback"}},
		"origin of a network":  {flag: "http-origins=http://10.0.0.1:8000", want: []string{"OPENSKILL_HTTP_ORIGINS", `"http://10.0.0.1:8000"`}},
		"origin with a path":   {flag: "http-origins=https://a.example/", want: []string{"OPENSKILL_HTTP_ORIGINS", `"https://a.example/"`}},
		"origin with a user":   {flag: "http-origins=https://u@a.example", want: []string{"OPENSKILL_HTTP_ORIGINS"}},
		"an empty origin":      {flag: "http-origins=https://a.example,", want: []string{"OPENSKILL_HTTP_ORIGINS", `""`}},
		"no such folder":       {env: "OPENSKILL_SKILLS_DIR=./nowhere", want: []string{"OPENSKILL_SKILLS_DIR", "does not exist", "a folder"}},
		"not a folder":         {env: "OPENSKILL_ALLOWED_ROOT=./file", want: []string{"OPENSKILL_ALLOWED_ROOT", "is not a folder"}},
		"state in data":        {env: "OPENSKILL_STATE_DIR=./data/state", want: []string{"OPENSKILL_STATE_DIR", "in the data folder"}},
		"unknown key":          {file: "listen: 127.0.0.1:1\nlisen: 127.0.0.1:2\n", want: []string{"openskill.yaml:2", `"lisen"`, "accepted are", "timeout_ms"}},
		"a list":               {file: "listen: [a]\n", want: []string{"openskill.yaml:1", "single value"}},
		"not a map":            {file: "- a\n", want: []string{"openskill.yaml:1", "map of settings"}},
		"an alias":             {file: "listen: &a x\ndebug: *a\n", want: []string{"openskill.yaml:1", "openskill.yaml:2", "aliases"}},
		"a key twice":          {file: "debug: 1\ndebug: 0\n", want: []string{"openskill.yaml:2", "appears twice"}},
		"not YAML":             {file: "a: [\n", want: []string{"openskill.yaml", "not valid YAML"}},
		"a part of nothing":    {env: "OPENSKILL_RATE=tenants:5", want: []string{"OPENSKILL_RATE (from the environment)", "known name", "tenant (1 to"}},
		"a value of no part":   {flag: "rate=5", want: []string{"OPENSKILL_RATE", "--rate", "known name"}},
		"a key of no part":     {file: "daily: {fuel: 7, fuels: 8}\n", want: []string{"openskill.yaml:1", `daily has no part "fuels"`}},
		"a part out of range":  {file: "storage_mb:\n  recordings: 1\n", want: []string{"OPENSKILL_STORAGE_MB recordings (from openskill.yaml:1)", "from 128"}},
		"a map of one value":   {file: "listen: {a: b}\n", want: []string{"openskill.yaml:1", "single value"}},
		"half of the traces":   {env: "OTEL_TRACES_SAMPLER_ARG=1.5", want: []string{"OTEL_TRACES_SAMPLER_ARG", "from 0 to 1"}},
		"unknown flag":         {flag: "nope=1", want: []string{"--nope"}},
	} {
		t.Run(name, func(t *testing.T) {
			from := Sources{Dir: dir}
			put := func(file, text string) {
				path := filepath.Join(dir, file)
				_ = os.Remove(path) // of the case before
				if text != "" {
					musttest.Write(t, path, text)
				}
			}
			put("openskill.yaml", c.file)
			put(".env", c.dotenv)
			if c.env != "" {
				from.Environ = []string{c.env}
			}
			if k, v, ok := strings.Cut(c.flag, "="); ok {
				from.Flags = map[string]string{k: v}
			}
			s, err := Load(from)
			var e *skill.Error
			if !errors.As(err, &e) {
				t.Fatalf("settings %+v and error %v, want an error", s, err)
			}
			for _, want := range c.want {
				if !strings.Contains(e.Message, want) {
					t.Errorf("the message lacks %q:\n%s", want, e.Message)
				}
			}
		})
	}
}

// The default of OPENSKILL_HTTP_BASE_URL is nobody's word, and names no origin.
func TestOriginsThatAreNamed(t *testing.T) {
	for _, c := range []struct {
		flags map[string]string
		want  []string
	}{
		{nil, nil},
		{map[string]string{"http-base-url": "https://Skills.example:443/host"}, []string{"https://skills.example"}},
		{map[string]string{"http-origins": " https://A.example:8443 ,http://127.0.0.1:3000,http://[::1]:443"}, []string{"https://a.example:8443", "http://127.0.0.1:3000", "http://[::1]:443"}},
		{map[string]string{"http-base-url": "https://b.example", "http-origins": "https://a.example"}, []string{"https://b.example", "https://a.example"}},
	} {
		s := musttest.Get(Load(Sources{Dir: t.TempDir(), Flags: c.flags}))(t)
		if got := s.WebOrigins(); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.flags, got, c.want)
		}
	}
}

func TestEveryProblemIsToldAtOnce(t *testing.T) {
	_, err := Load(Sources{Dir: t.TempDir(), Environ: []string{"OPENSKILL_TIMEOUT_MS=a", "OPENSKILL_FUEL=b"}})
	if e, ok := errors.AsType[*skill.Error](err); !ok || !strings.Contains(e.Message, "OPENSKILL_FUEL") || !strings.Contains(e.Message, "OPENSKILL_TIMEOUT_MS") {
		t.Errorf("got %v", err)
	}
}

func TestSyntaxErrorsOfDotEnvShowNoSecret(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, ".env"), "KEY=\"sk-very-secret\nOTHER\n")
	_, err := Load(Sources{Dir: dir})
	if err == nil || strings.Contains(err.Error(), "sk-very-secret") {
		t.Errorf("got %v", err)
	}
}

func TestMissingFileThatWasNamed(t *testing.T) {
	_, err := Load(Sources{Dir: t.TempDir(), File: "other.yaml"})
	if err == nil || !strings.Contains(err.Error(), "other.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestTableIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Table() {
		secret := s.Env == "OPENSKILL_PROVIDERS" || s.Env == "OPENSKILL_JWT_SECRET" || s.Env == "OPENSKILL_OIDC_CLIENT_SECRET" || s.Env == "OPENSKILL_DATABASE_URL"
		if s.Env == "" || (s.Flag == "") != secret || s.Key == "" || s.Doc == "" || s.Accepts == "" || strings.HasSuffix(s.Accepts, " to ") {
			t.Errorf("an incomplete row: %+v", s)
		}
		for _, name := range []string{s.Env, "--" + s.Flag, "key " + s.Key} {
			if name == "--" {
				continue
			}
			if seen[name] {
				t.Errorf("%s appears twice", name)
			}
			seen[name] = true
		}
	}
	if len(seen) < 3*20 {
		t.Errorf("only %d names", len(seen))
	}
}

// TestPartsOfASetting: a part that is not given has what a lower source says of it.
func TestPartsOfASetting(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "openskill.yaml"), "timeout_ms: 1000/2000\nrate: {tenant: 10, principal: 5}\nconcurrency: 8\n"+
		"providers:\n  openai: {key: k, model: m}\n  llm-service: {base: 'http://127.0.0.1:1'}\nretention_days: records:7\n")
	s := musttest.Get(Load(Sources{Dir: dir, Environ: []string{"OPENSKILL_TIMEOUT_MS=/4000", "OPENSKILL_RATE=tenant:20", "OPENAI_MODEL=n", "OPENSKILL_PROVIDERS=openai.model:o,deepseek.key:d"}, Flags: map[string]string{"concurrency": "skill:3"}}))(t)
	got := fmt.Sprintln(s.TimeoutMS, s.MaxTimeoutMS, s.RateTenant, s.RatePrincipal, s.RateRequests, s.Concurrency, s.ConcurrencyPerSkill, s.AuditDays, s.AgentDays, s.OpenAIKey, s.OpenAIModel, s.DeepSeekKey, s.LLMServiceURL)
	if want := "1000 4000 20 5 30000 8 3 7 30 k n d http://127.0.0.1:1\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, row := range s.Show() {
		if row.Env == "OPENSKILL_RATE" && (row.Value != "tenant:20,principal:5,requests:30000" || row.Source != FromEnv || row.Where != "the environment, openskill.yaml:2") {
			t.Errorf("shown as %+v", row)
		}
		if row.Env == "OPENSKILL_TIMEOUT_MS" && row.Value != "1000/4000" {
			t.Errorf("shown as %q", row.Value)
		}
	}
}

// TestOldNames gives each old name a value in each source: it is taken, or said to be gone, and
// the new name is told.
func TestOldNames(t *testing.T) {
	for name, old := range oldNames {
		if targets()[name].setting != nil || targets()[name].field.env != "" {
			t.Errorf("%s is the name of a setting too", name)
			continue
		}
		text := "200"
		var want string
		switch {
		case old.now == "":
		case name == "OPENSKILL_CONCURRENCY_PER_SKILL":
			text = "20"
		case fieldOf(old.now).number:
			want = old.now
		case name == "OPENSKILL_TRACES":
			text = "off"
		case name == "OPENSKILL_AGENT_FAST", name == "OPENSKILL_AGENT_REASONING":
			text = "rules"
		}
		dir := t.TempDir()
		for place, from := range map[string]Sources{
			"the environment":               {Dir: dir, Environ: []string{name + "=" + text}},
			"the flag --" + flagOfOld(name): {Dir: dir, Flags: map[string]string{flagOfOld(name): text}},
			"old.yaml:1":                    {Dir: dir, File: "old.yaml"},
		} {
			musttest.Write(t, filepath.Join(dir, "old.yaml"), keyOf(name)+": "+text+"\n")
			s, err := Load(from)
			if err != nil {
				t.Errorf("%s from %s: %v", name, place, err)
				continue
			}
			r := s.Renamed()
			if len(r) != 1 || r[0].Old != name || r[0].Where != place || (r[0].Now == "") == (r[0].Why == "") {
				t.Errorf("%s from %s is told as %+v", name, place, r)
			}
			if want == "" {
				continue
			}
			if got := fmt.Sprint(reflect.ValueOf(s).Elem().Field(fieldOf(want).index)); got != text {
				t.Errorf("%s from %s sets %s to %s", name, place, want, got)
			}
			env, value, _ := strings.Cut(r[0].Now, "=")
			if s, err = Load(Sources{Dir: dir, Environ: []string{env + "=" + value}}); err != nil || fmt.Sprint(reflect.ValueOf(s).Elem().Field(fieldOf(want).index)) != text {
				t.Errorf("%s is not what %s was: %v", r[0].Now, name, err)
			}
		}
	}
	s, err := Load(Sources{Dir: t.TempDir(), Environ: []string{"OPENSKILL_TRACES=off", "OPENSKILL_TRACES_PER_MILLION=2500", "OPENSKILL_CONCURRENCY_TENANT=0", "OPENSKILL_MAX_FUEL=5", "OPENSKILL_FUEL=4/6"}})
	if err != nil || s.Traces != TracesNone || s.TracesRatio != 0.0025 || s.ConcurrencyTenant != 0 || s.MaxFuel != 6 {
		t.Errorf("%+v, %v", s, err)
	}
}

func flagOfOld(name string) string { return strings.ReplaceAll(keyOf(name), "_", "-") }

func TestTrustedProxies(t *testing.T) {
	for text, want := range map[string]string{
		"": "[]", "127.0.0.1": "[127.0.0.1/32]", " 10.1.2.3/8 , 2001:db8::1": "[10.0.0.0/8 2001:db8::1/128]", "::ffff:192.0.2.1": "[192.0.2.1/32]",
	} {
		if got := fmt.Sprint((&Settings{TrustedProxies: text}).Proxies()); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
