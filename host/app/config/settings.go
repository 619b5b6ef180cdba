package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/host/agent/llm"
	"openskill/host/dispatch/grants"
	"openskill/sdk/skill"
)

// Auth says who may call.
type Auth string

// The values of OPENSKILL_AUTH.
const (
	AuthNone     Auth = "none"     // the caller is the operator of this machine
	AuthRequired Auth = "required" // who calls shows a JWT or a key
)

// AuditPayload says what records keep of inputs and outputs.
type AuditPayload string

// The values of OPENSKILL_AUDIT_PAYLOAD.
const (
	PayloadNone     AuditPayload = "none"     // their sizes
	PayloadHash     AuditPayload = "hash"     // and their SHA-256
	PayloadRedacted AuditPayload = "redacted" // and their shape, with the values of secrets left out
	PayloadFull     AuditPayload = "full"     // and all of them
)

// Record says whether runs can be replayed.
type Record string

// The values of OPENSKILL_RECORD.
const (
	RecordOff Record = "off"
	RecordOn  Record = "on"
)

// Isolation says whose calls share a worker process.
type Isolation string

// The values of OPENSKILL_WORKERS.
const (
	PerTenant Isolation = "tenant"
	PerSkill  Isolation = "skill"
	Shared    Isolation = "shared"
	NoWorkers Isolation = "off" // calls run in the host's process
)

// Approval says when scripts of Agent Skills must be approved.
type Approval string

// The values of OPENSKILL_SCRIPT_APPROVAL.
const (
	ApproveNever   Approval = "never"
	ApproveVersion Approval = "version"
	ApproveCall    Approval = "call"
)

// Traces says where spans of calls go.
type Traces string

// The values of OPENSKILL_TRACES.
const (
	TracesOff  Traces = "off"
	TracesFile Traces = "file" // into the state folder
	TracesOTLP Traces = "otlp" // to a collector, in builds that can
)

// KeepLogs says of which runs the end of standard error is kept.
type KeepLogs string

// The values of OPENSKILL_KEEP_LOGS.
const (
	LogsNone   KeepLogs = "none"
	LogsFailed KeepLogs = "failed"
	LogsAll    KeepLogs = "all"
)

// Settings of one host. Paths are absolute after [Load].
type Settings struct {
	Listen          string `env:"OPENSKILL_LISTEN" envDefault:"127.0.0.1:8000" flag:"listen" accepts:"host:port with a loopback host, like 127.0.0.1:8000; port 0 takes a free one" doc:"listen address of the host"`
	HTTPBaseURL     string `env:"OPENSKILL_HTTP_BASE_URL" envDefault:"http://127.0.0.1:8000" flag:"http-base-url" accepts:"an http or https address without query" doc:"public base URL of the host"`
	HTTPOrigins     string `env:"OPENSKILL_HTTP_ORIGINS" flag:"http-origins" accepts:"origins with commas between them, like https://skills.example.com; http with a loopback host alone" doc:"additional browser origins of the host, besides that of OPENSKILL_HTTP_BASE_URL; default: none"`
	TrustedProxies  string `env:"OPENSKILL_TRUSTED_PROXIES" flag:"trusted-proxies" accepts:"addresses and prefixes, separated by commas, like 127.0.0.1,10.0.0.0/8" doc:"reverse proxies whose Forwarded and X-Forwarded-For headers are trusted for the client address; default: none"`
	Auth            Auth   `env:"OPENSKILL_AUTH" flag:"auth" accepts:"none or required" doc:"authentication of callers; default: none on loopback, required elsewhere"`
	AnonymousScopes string `env:"OPENSKILL_ANONYMOUS_SCOPES" flag:"anonymous-scopes" accepts:"scopes with commas between them, such as skills:read" doc:"scopes of unauthenticated callers when authentication is required; default: none"`
	JWTSecret       string `env:"OPENSKILL_JWT_SECRET" accepts:"32 bytes or more" doc:"HS256 secret for JWTs; default: none, such JWTs are rejected"`
	JWTJWKS         string `env:"OPENSKILL_JWT_JWKS" flag:"jwt-jwks" accepts:"a file, or an https address" doc:"public keys (JWKS) for JWTs signed with RS256, ES256 or EdDSA; default: none, such JWTs are rejected"`
	JWTIssuer       string `env:"OPENSKILL_JWT_ISSUER" flag:"jwt-issuer" accepts:"the claim iss" doc:"required issuer (iss) of JWTs; needed with OPENSKILL_JWT_JWKS; default: any issuer that has OPENSKILL_JWT_SECRET"`
	JWTAudience     string `env:"OPENSKILL_JWT_AUDIENCE" flag:"jwt-audience" accepts:"the claim aud" doc:"required audience (aud) of JWTs; needed with OPENSKILL_JWT_JWKS; default: any"`
	JWTClaims       string `env:"OPENSKILL_JWT_CLAIMS" flag:"jwt-claims" accepts:"entries between semicolons or line ends: tenant, scopes, roles or name, = and a claim; for scopes and roles several with commas between them, like tenant=tid; scopes=scp; roles=realm_access.roles" doc:"claim names in JWTs; default: tenant=tenant; scopes=scope; name=name, and no roles"`
	JWTTenant       string `env:"OPENSKILL_JWT_TENANT" flag:"jwt-tenant" accepts:"1 to 64 characters of letters, digits and . _ : -" doc:"tenant of JWTs without a tenant claim; default: none, such JWTs are rejected"`
	JWTRoles        string `env:"OPENSKILL_JWT_ROLES" flag:"jwt-roles" accepts:"entries between semicolons or line ends: a role, = and scopes with commas between them, like staff=skills:read,skills:invoke; * stands for every JWT" doc:"scopes granted by JWT roles; default: none"`
	JWTSkewS        uint64 `env:"OPENSKILL_JWT_SKEW_S" envDefault:"30" flag:"jwt-skew-s" min:"0" max:"300" doc:"allowed clock skew when checking JWT times, in seconds"`

	OIDCClientID     string `env:"OPENSKILL_OIDC_CLIENT_ID" flag:"oidc-client-id" accepts:"a client id; OPENSKILL_JWT_ISSUER, OPENSKILL_JWT_JWKS and OPENSKILL_HTTP_BASE_URL must be set too" doc:"OpenID client id for sign-in to the console; default: none, sign-in by API key or JWT"`
	OIDCClientSecret string `env:"OPENSKILL_OIDC_CLIENT_SECRET" accepts:"a client secret" doc:"OpenID client secret; default: none, as for public clients"`
	OIDCScopes       string `env:"OPENSKILL_OIDC_SCOPES" envDefault:"openid,profile" flag:"oidc-scopes" accepts:"scopes with commas between them, openid among them" doc:"scopes requested from the OpenID provider by the console, and by MCP clients when OPENSKILL_JWT_ROLES is set"`

	DatabaseURL    string       `env:"OPENSKILL_DATABASE_URL" accepts:"postgres://… or sqlite:FILE" doc:"database of keys, records and definitions; default: a SQLite file in the state folder"`
	AuditPayload   AuditPayload `env:"OPENSKILL_AUDIT_PAYLOAD" envDefault:"hash" flag:"audit-payload" accepts:"none, hash, redacted or full" doc:"input and output stored in call records"`
	AuditPayloadKB uint64       `env:"OPENSKILL_AUDIT_PAYLOAD_KB" envDefault:"16" flag:"audit-payload-kb" min:"1" max:"1024" doc:"maximum stored input, and maximum stored output, of a call record in KiB"`
	AuditDays      uint64       `env:"OPENSKILL_AUDIT_DAYS" envDefault:"400" flag:"audit-days" min:"1" max:"36500" doc:"retention of records in days"`
	AuditMB        uint64       `env:"OPENSKILL_AUDIT_MB" envDefault:"102400" flag:"audit-mb" min:"1" max:"16777216" doc:"maximum records per tenant in MiB; when full, calls are refused until old records are removed"`
	ResultMinutes  uint64       `env:"OPENSKILL_RESULT_MINUTES" envDefault:"60" flag:"result-minutes" min:"1" max:"43200" doc:"retention of artifacts and results of long calls in minutes"`
	KeepLogs       KeepLogs     `env:"OPENSKILL_KEEP_LOGS" envDefault:"none" flag:"keep-logs" accepts:"none, failed or all" doc:"executions whose standard error tail is stored, for as long as artifacts"`
	Record         Record       `env:"OPENSKILL_RECORD" envDefault:"off" flag:"record" accepts:"off or on" doc:"recording of executions for replay"`
	RecordMB       uint64       `env:"OPENSKILL_RECORD_MB" envDefault:"16" flag:"record-mb" min:"1" max:"128" doc:"maximum size of one recording in MiB"`
	RecordingsMB   uint64       `env:"OPENSKILL_RECORDINGS_MB" envDefault:"1024" flag:"recordings-mb" min:"128" max:"16777216" doc:"maximum recordings per tenant in MiB; the oldest are removed first"`

	RateTenant           int    `env:"OPENSKILL_RATE_TENANT" envDefault:"6000000" flag:"rate-tenant" min:"1" max:"100000000" reload:"yes" doc:"maximum calls per tenant and minute"`
	RatePrincipal        int    `env:"OPENSKILL_RATE_PRINCIPAL" envDefault:"6000000" flag:"rate-principal" min:"1" max:"100000000" reload:"yes" doc:"maximum calls per principal and minute"`
	RateRequests         int    `env:"OPENSKILL_RATE_REQUESTS" envDefault:"30000" flag:"rate-requests" min:"1" max:"100000000" reload:"yes" doc:"maximum requests, other than calls, per minute and principal, or address without a valid credential; a tenant has twice as many"`
	ConcurrencyTenant    int    `env:"OPENSKILL_CONCURRENCY_TENANT" envDefault:"0" flag:"concurrency-tenant" min:"0" max:"8192" reload:"yes" doc:"maximum concurrent calls per tenant when authentication is required; 0: its share of OPENSKILL_CONCURRENCY, which always applies"`
	ConcurrencyPrincipal int    `env:"OPENSKILL_CONCURRENCY_PRINCIPAL" envDefault:"0" flag:"concurrency-principal" min:"0" max:"8192" reload:"yes" doc:"maximum concurrent calls per principal when authentication is required; 0: the share of its tenant, which always applies"`
	DailyExecutions      uint64 `env:"OPENSKILL_DAILY_EXECUTIONS" envDefault:"1000000000" flag:"daily-executions" min:"1" max:"1000000000000" reload:"yes" doc:"maximum runs per tenant and day (UTC)"`
	DailyFuel            uint64 `env:"OPENSKILL_DAILY_FUEL" envDefault:"1000000000000000000" flag:"daily-fuel" min:"1" max:"4611686018427387904" reload:"yes" doc:"maximum fuel per tenant and day (UTC), in units"`
	DailyModelRequests   uint64 `env:"OPENSKILL_DAILY_MODEL_REQUESTS" envDefault:"10000" flag:"daily-model-requests" min:"1" max:"1000000000000" reload:"yes" doc:"maximum model requests per tenant and day (UTC)"`
	DailyModelTokens     uint64 `env:"OPENSKILL_DAILY_MODEL_TOKENS" envDefault:"20000000" flag:"daily-model-tokens" min:"1" max:"1000000000000000" reload:"yes" doc:"maximum model tokens per tenant and day (UTC), prompts and replies together"`
	DailyModelCents      uint64 `env:"OPENSKILL_DAILY_MODEL_CENTS" envDefault:"10000" flag:"daily-model-cents" min:"1" max:"100000000" reload:"yes" doc:"maximum model cost per tenant and day (UTC) in US cents, counting models with known prices"`

	SkillsDir       string `env:"OPENSKILL_SKILLS_DIR" envDefault:"./skills" flag:"skills" path:"dir" accepts:"a folder" doc:"folder of trusted skills, each a folder with a skill.yaml"`
	SkillConfigPath string `env:"OPENSKILL_SKILL_CONFIG_PATH" envDefault:"./configs/skills.yaml" flag:"skill-config-path" path:"file" accepts:"a file" doc:"list of trusted skills in one file; their code is in the folder of skills or of scripts"`
	AgentSkills     string `env:"OPENSKILL_AGENT_SKILLS" flag:"agent-skills" accepts:"folders, with the separator of PATH between them" doc:"folders of Agent Skills, which have a SKILL.md; default: the folder of skills"`
	AgentNative     string `env:"OPENSKILL_AGENT_SKILLS_NATIVE" flag:"agent-skills-native" accepts:"one of the folders of Agent Skills" doc:"folder of Agent Skills whose Python scripts run outside the sandbox, by the CLI runner; pulled and untrusted skills stay in the sandbox; default: none"`
	CLIDir          string `env:"OPENSKILL_CLI_DIR" envDefault:"./skills_cli" flag:"cli-dir" path:"dir" accepts:"a folder" doc:"folder of trusted scripts named {id}.py"`
	DataRoot        string `env:"OPENSKILL_ALLOWED_ROOT" envDefault:"./data" flag:"data" path:"dir" accepts:"a folder" doc:"data folder that skills may read as /data (OPENSKILL_DATA_ALLOW selects which skills); default: none"`
	StateDir        string `env:"OPENSKILL_STATE_DIR" envDefault:"./.openskill" flag:"state" path:"any" accepts:"a folder outside the data folder; made when missing" doc:"state folder of the host: database, uploads, caches"`
	Python          string `env:"OPENSKILL_PYTHON" envDefault:"python3" flag:"python" accepts:"the name or path of a Python 3" doc:"Python interpreter of the CLI runner"`

	TimeoutMS uint64 `env:"OPENSKILL_TIMEOUT_MS" envDefault:"15000" flag:"timeout-ms" min:"1" max:"86400000" doc:"default time limit of a call in ms"`
	MemoryMB  uint64 `env:"OPENSKILL_MEMORY_MB" envDefault:"256" flag:"memory-mb" min:"1" max:"2048" doc:"default memory limit of a call, including its files below /work, in MiB"`
	Fuel      uint64 `env:"OPENSKILL_FUEL" envDefault:"20000000000" flag:"fuel" min:"1" max:"4611686018427387904" doc:"default fuel limit of a call, in units of about one instruction"`
	OutputKB  uint64 `env:"OPENSKILL_OUTPUT_KB" envDefault:"1024" flag:"output-kb" min:"1" max:"65536" doc:"default limit of standard output of a call in KiB"`
	ScratchMB uint64 `env:"OPENSKILL_SCRATCH_MB" envDefault:"16" flag:"scratch-mb" min:"1" max:"65536" doc:"default limit of files of a call below /work in MiB"`

	MaxTimeoutMS uint64 `env:"OPENSKILL_MAX_TIMEOUT_MS" envDefault:"120000" flag:"max-timeout-ms" min:"1" max:"86400000" doc:"maximum time limit of a call in ms"`
	MaxMemoryMB  uint64 `env:"OPENSKILL_MAX_MEMORY_MB" envDefault:"1024" flag:"max-memory-mb" min:"1" max:"2048" doc:"maximum memory limit of a call, including its files below /work, in MiB"`
	MaxFuel      uint64 `env:"OPENSKILL_MAX_FUEL" envDefault:"1000000000000" flag:"max-fuel" min:"1" max:"4611686018427387904" doc:"maximum fuel limit of a call, in units"`
	MaxOutputKB  uint64 `env:"OPENSKILL_MAX_OUTPUT_KB" envDefault:"16384" flag:"max-output-kb" min:"1" max:"65536" doc:"maximum standard output limit of a call in KiB"`
	MaxScratchMB uint64 `env:"OPENSKILL_MAX_SCRATCH_MB" envDefault:"64" flag:"max-scratch-mb" min:"1" max:"65536" doc:"maximum scratch limit of a call in MiB"`

	MaxBodyKB           uint64 `env:"OPENSKILL_MAX_BODY_KB" envDefault:"1024" flag:"max-body-kb" min:"1" max:"65536" doc:"maximum request body in KiB"`
	Concurrency         int    `env:"OPENSKILL_CONCURRENCY" envDefault:"32" flag:"concurrency" min:"1" max:"4096" reload:"yes" doc:"maximum concurrent calls; more are queued briefly, then refused with 429"`
	ConcurrencyPerSkill int    `env:"OPENSKILL_CONCURRENCY_PER_SKILL" envDefault:"16" flag:"concurrency-per-skill" min:"1" max:"4096" reload:"yes" doc:"maximum concurrent calls per skill"`

	Workers        Isolation `env:"OPENSKILL_WORKERS" envDefault:"tenant" flag:"workers" accepts:"tenant, skill, shared or off" doc:"sharing of worker processes: per tenant, per skill, or one for all; off: skills run in the host's own process"`
	WorkersMax     int       `env:"OPENSKILL_WORKERS_MAX" envDefault:"32" flag:"workers-max" min:"1" max:"4096" doc:"maximum worker processes, shared between tenants; an idle one of the tenant with the most is stopped first"`
	WorkersSpare   int       `env:"OPENSKILL_WORKERS_SPARE" envDefault:"1" flag:"workers-spare" min:"0" max:"64" doc:"number of spare worker processes for the next tenant (or skill)"`
	WorkerMemoryMB uint64    `env:"OPENSKILL_WORKER_MEMORY_MB" envDefault:"2048" flag:"worker-memory-mb" min:"128" max:"1048576" doc:"memory limit of a worker process in MiB; the kernel kills one that exceeds it, where control groups are available"`
	WorkerCalls    int       `env:"OPENSKILL_WORKER_CALLS" envDefault:"10000" flag:"worker-calls" min:"1" max:"1000000000" doc:"number of calls after which a worker process is replaced"`

	ScriptApproval Approval `env:"OPENSKILL_SCRIPT_APPROVAL" envDefault:"never" flag:"script-approval" accepts:"never, version or call" doc:"approvals required for scripts of Agent Skills: never, once per version of the skill, or for each call"`

	HTTPAllow string `env:"OPENSKILL_HTTP_ALLOW" flag:"http-allow" accepts:"entries between semicolons or line ends, like https://api.example.com/v1/ GET,POST; for an upload @tenant/skill before it" reload:"yes" doc:"HTTP requests granted to skills whose manifests ask for them; default: none"`
	EnvAllow  string `env:"OPENSKILL_ENV_ALLOW" flag:"env-allow" accepts:"entries between semicolons or line ends, each NAME=value, or NAME of a variable of the host; for an upload @tenant/skill before it" reload:"yes" secret:"yes" doc:"environment variables granted to skills whose manifests ask for them; default: none"`

	DataAllow string `env:"OPENSKILL_DATA_ALLOW" flag:"data-allow" accepts:"entries between semicolons or line ends, each @tenant/skill for an upload or @skill for one of your own, and after it a folder below the data folder; without a folder: all of it" reload:"yes" doc:"data granted to skills whose manifests ask for it; default: the whole data folder for your own skills, nothing for uploads and pulled skills of strangers"`

	TrustPolicy string `env:"OPENSKILL_TRUST_POLICY" flag:"trust-policy" path:"file" accepts:"a file" reload:"yes" doc:"trust policy file: accepted publishers of pulled skills; default: none, unless a command names keys"`
	PullHosts   string `env:"OPENSKILL_PULL_HOSTS" flag:"pull-hosts" accepts:"hosts with commas between them, each with its port if it is not 443" reload:"yes" doc:"registries, and hosts that they redirect to, for uploads by reference (POST /skills); needs a trust policy; default: none"`

	UploadMB          uint64 `env:"OPENSKILL_UPLOAD_MB" envDefault:"32" flag:"upload-mb" min:"1" max:"1024" doc:"maximum uploaded archive or module in MiB"`
	UploadSkills      int    `env:"OPENSKILL_UPLOAD_SKILLS" envDefault:"100" flag:"upload-skills" min:"1" max:"100000" doc:"maximum uploaded skills per tenant"`
	UploadVersions    int    `env:"OPENSKILL_UPLOAD_VERSIONS" envDefault:"20" flag:"upload-versions" min:"1" max:"10000" doc:"maximum versions per uploaded skill, including deleted ones still on disk"`
	UploadQuotaMB     uint64 `env:"OPENSKILL_UPLOAD_QUOTA_MB" envDefault:"1024" flag:"upload-quota-mb" min:"1" max:"1048576" doc:"maximum size of all uploads per tenant in MiB, including deleted ones still on disk"`
	UploadGraceS      uint64 `env:"OPENSKILL_UPLOAD_GRACE_S" envDefault:"600" flag:"upload-grace-s" min:"1" max:"31536000" doc:"delay between the deletion of a version and of its files, in seconds; longer than the longest call"`
	QuarantineCrashes int    `env:"OPENSKILL_QUARANTINE_CRASHES" envDefault:"2" flag:"quarantine-crashes" min:"1" max:"1000000" doc:"number of worker crashes within 10 minutes that quarantine an uploaded version"`
	QuarantineLimits  int    `env:"OPENSKILL_QUARANTINE_LIMITS" envDefault:"20" flag:"quarantine-limits" min:"1" max:"1000000" doc:"number of consecutive runs hitting a limit that quarantine an uploaded version"`

	Agent

	Traces           Traces `env:"OPENSKILL_TRACES" envDefault:"off" flag:"traces" accepts:"off, file or otlp" doc:"destination of call traces: files in the state folder, or a collector (in builds with the tag otlp)"`
	TracesPerMillion int    `env:"OPENSKILL_TRACES_PER_MILLION" envDefault:"1000000" flag:"traces-per-million" min:"1" max:"1000000" doc:"number of traces stored per million"`
	TracesMB         int64  `env:"OPENSKILL_TRACES_MB" envDefault:"64" flag:"traces-mb" min:"2" max:"65536" doc:"maximum size of trace files in MiB; the oldest are removed first"`
	AdminListen      string `env:"OPENSKILL_ADMIN_LISTEN" flag:"admin-listen" accepts:"host:port with a loopback host, like 127.0.0.1:8001; port 0 takes a free one" doc:"listen address of profiles (pprof) and metrics for operators; default: none"`

	Debug bool `env:"OPENSKILL_DEBUG" envDefault:"0" flag:"debug" accepts:"0 or 1" reload:"yes" doc:"debug logging"`

	allowed *grants.Allowed
	prices  llm.Prices
	origins map[string]Source
	places  map[string]string // what Source says, as messages have it: with file and line
	unknown []string
	files   []string // that they were read from
}

// Allowed is what OPENSKILL_HTTP_ALLOW, OPENSKILL_ENV_ALLOW and OPENSKILL_DATA_ALLOW say.
func (s *Settings) Allowed() *grants.Allowed { return s.allowed }

// WebOrigins lists the origins whose web pages may call the host besides those that it serves
// at addresses and as localhost: that of OPENSKILL_HTTP_BASE_URL and those of
// OPENSKILL_HTTP_ORIGINS. The default of the former is nobody's word: on a host that listens
// elsewhere it is the page of whatever other program has that port, as many do.
func (s *Settings) WebOrigins() []string {
	list, _ := parseOrigins(s.HTTPOrigins) // Load has checked it
	if origin, _, err := skill.ParseHTTPOrigin(s.HTTPBaseURL); err == nil && s.Origin("OPENSKILL_HTTP_BASE_URL") != FromDefault {
		list = slices.Insert(list, 0, origin.String())
	}
	return list
}

// parseOrigins reads origins as browsers write them, which are compared as text.
func parseOrigins(text string) (list []string, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		o, rest, err := skill.ParseHTTPOrigin(entry)
		if err != nil || rest != "" || o.Scheme != "https" && !loopback(strings.Trim(o.Host, "[]")) {
			return nil, fmt.Errorf("has %q, which is not an exact https origin and not one of http with a loopback host", skill.CleanText(entry, 80))
		}
		list = append(list, o.String())
	}
	return list, nil
}

// Proxies are those that OPENSKILL_TRUSTED_PROXIES names; nil: none.
func (s *Settings) Proxies() []netip.Prefix {
	list, _ := parseProxies(s.TrustedProxies) // Load has checked it
	return list
}

func parseProxies(text string) (list []netip.Prefix, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		p, err := netip.ParsePrefix(entry)
		if err != nil {
			a, err := netip.ParseAddr(entry)
			if err != nil {
				return nil, err
			}
			a = a.Unmap().WithZone("")
			p = netip.PrefixFrom(a, a.BitLen())
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// Allow replaces what skills are granted by entries for data alone.
func (s *Settings) Allow(data string) (err error) {
	s.HTTPAllow, s.EnvAllow, s.DataAllow = "", "", data
	s.allowed, _, _, err = grants.Parse("", "", data, nil)
	return err
}

// AgentSkillsDirs are the folders that OPENSKILL_AGENT_SKILLS names; nil: none.
func (s *Settings) AgentSkillsDirs() []string {
	if s.AgentSkills == "" {
		return nil
	}
	return filepath.SplitList(s.AgentSkills)
}

// PullsFrom are the hosts that OPENSKILL_PULL_HOSTS names; nil: none.
func (s *Settings) PullsFrom() []string {
	var hosts []string
	for h := range strings.SplitSeq(s.PullHosts, ",") {
		if h = strings.TrimSpace(h); h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Source is where a value came from.
type Source string

// The sources, highest first.
const (
	FromFlag    Source = "flag"
	FromEnv     Source = "environment"
	FromDotEnv  Source = ".env"
	FromFile    Source = "openskill.yaml"
	FromDefault Source = "default"
)

// Setting is one row of the table of settings.
type Setting struct {
	Env     string // name in the environment and in .env
	Flag    string // without dashes; "" of secrets, which everyone on the machine would see
	Key     string // in openskill.yaml
	Default string // "" for none
	Accepts string
	Doc     string
	Secret  bool // its value is shown to nobody
	Reloads bool // a running host takes a new value at SIGHUP; others wait for a restart

	field string // name in Settings
	path  string // "dir": must exist when given; "file": a file, if there is one; "any": a path; "": no path
}

// Table lists all settings in the order of their declaration.
func Table() []Setting { return slices.Clone(table()) }

// table is made once: each command of the program asks for it when it starts.
var table = sync.OnceValue(func() (out []Setting) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		name := f.Tag.Get("env")
		if name == "" {
			continue
		}
		s := Setting{
			Env: name, Flag: f.Tag.Get("flag"), Key: strings.ToLower(strings.TrimPrefix(name, prefix)),
			Default: f.Tag.Get("envDefault"), Accepts: f.Tag.Get("accepts"), Doc: f.Tag.Get("doc"),
			field: f.Name, path: f.Tag.Get("path"),
			Reloads: f.Tag.Get("reload") == "yes",
		}
		s.Secret = s.Flag == "" || f.Tag.Get("secret") == "yes"
		if s.Accepts == "" {
			s.Accepts = "a whole number from " + f.Tag.Get("min") + " to " + f.Tag.Get("max")
		}
		out = append(out, s)
	}
	return out
})

const prefix = "OPENSKILL_"

// Origin says where the value of a setting came from, by its name in the
// environment.
func (s *Settings) Origin(env string) Source { return s.origins[env] }

// Unknown lists names that begin with OPENSKILL_ in the environment or .env and
// that are no setting of this release: perhaps misspelt, worth a warning.
func (s *Settings) Unknown() []string { return s.unknown }

// Defaults are the limits of a call whose manifest says nothing.
func (s *Settings) Defaults() skill.Limits {
	return skill.LimitsJSON{TimeoutMS: s.TimeoutMS, MemoryMB: s.MemoryMB, Fuel: s.Fuel, OutputKB: s.OutputKB, ScratchMB: s.ScratchMB}.Limits()
}

// Caps are the limits that no call exceeds.
func (s *Settings) Caps() skill.Limits {
	return skill.LimitsJSON{TimeoutMS: s.MaxTimeoutMS, MemoryMB: s.MaxMemoryMB, Fuel: s.MaxFuel, OutputKB: s.MaxOutputKB, ScratchMB: s.MaxScratchMB}.Limits()
}

// MaxBody is the largest body of a request, in bytes.
func (s *Settings) MaxBody() int {
	return int(s.MaxBodyKB) << 10 // at most 64 MiB by its range
}

// MaxUpload is the largest uploaded archive or module, in bytes.
func (s *Settings) MaxUpload() int64 {
	return int64(s.UploadMB) << 20 // at most 1 GiB by its range
}

// UploadBytes is what the uploads of one tenant may take, in bytes.
func (s *Settings) UploadBytes() int64 {
	return int64(s.UploadQuotaMB) << 20 // at most 1 TiB by its range
}

// UploadGrace is how long the files of a deleted version stay.
func (s *Settings) UploadGrace() time.Duration {
	return time.Duration(s.UploadGraceS) * time.Second // at most a year by its range
}

// Anonymous are the scopes of callers who show nothing; nil: none.
func (s *Settings) Anonymous() []string {
	return scopeList(s.AnonymousScopes)
}

// JWTSkew is how far clocks may be apart.
func (s *Settings) JWTSkew() time.Duration {
	return time.Duration(s.JWTSkewS) * time.Second // at most five minutes by its range
}

// AuditPayloadBytes is how much a record keeps of an input or an output.
func (s *Settings) AuditPayloadBytes() int {
	return int(s.AuditPayloadKB) << 10 // at most 1 MiB by its range
}

// AuditRetention is how long records are kept.
func (s *Settings) AuditRetention() time.Duration {
	return time.Duration(s.AuditDays) * 24 * time.Hour // at most a century by its range
}

// ResultTime is how long results of long calls are kept.
func (s *Settings) ResultTime() time.Duration {
	return time.Duration(s.ResultMinutes) * time.Minute // at most a month by its range
}
