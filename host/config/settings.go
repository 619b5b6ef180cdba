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

	"openskill/host/grants"
	"openskill/host/llm"
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
	Listen          string `env:"OPENSKILL_LISTEN" envDefault:"127.0.0.1:8000" flag:"listen" accepts:"host:port with a loopback host, like 127.0.0.1:8000; port 0 takes a free one" doc:"address that the host listens on"`
	HTTPBaseURL     string `env:"OPENSKILL_HTTP_BASE_URL" envDefault:"http://127.0.0.1:8000" flag:"http-base-url" accepts:"an http or https address without query" doc:"address at which clients reach the host"`
	HTTPOrigins     string `env:"OPENSKILL_HTTP_ORIGINS" flag:"http-origins" accepts:"origins with commas between them, like https://skills.example.com; http with a loopback host alone" doc:"further origins at which browsers reach the host, beside that of OPENSKILL_HTTP_BASE_URL; unset: none"`
	TrustedProxies  string `env:"OPENSKILL_TRUSTED_PROXIES" flag:"trusted-proxies" accepts:"addresses and prefixes, separated by commas, like 127.0.0.1,10.0.0.0/8" doc:"reverse proxies whose headers Forwarded and X-Forwarded-For tell the address of the client; unset: none"`
	Auth            Auth   `env:"OPENSKILL_AUTH" flag:"auth" accepts:"none or required" doc:"whether callers must show who they are; unset: none on loopback, required elsewhere"`
	AnonymousScopes string `env:"OPENSKILL_ANONYMOUS_SCOPES" flag:"anonymous-scopes" accepts:"scopes with commas between them, such as skills:read" doc:"what callers may do who show nothing, where callers must show who they are; unset: nothing"`
	JWTSecret       string `env:"OPENSKILL_JWT_SECRET" accepts:"32 bytes or more" doc:"key of JWTs that are signed with HS256; unset: none are accepted"`
	JWTJWKS         string `env:"OPENSKILL_JWT_JWKS" flag:"jwt-jwks" accepts:"a file, or an https address" doc:"public keys (JWKS) of JWTs that are signed with RS256, ES256 or EdDSA; unset: none are accepted"`
	JWTIssuer       string `env:"OPENSKILL_JWT_ISSUER" flag:"jwt-issuer" accepts:"the claim iss" doc:"who must have issued a JWT; needed with OPENSKILL_JWT_JWKS; unset: anybody who has OPENSKILL_JWT_SECRET"`
	JWTAudience     string `env:"OPENSKILL_JWT_AUDIENCE" flag:"jwt-audience" accepts:"the claim aud" doc:"whom a JWT must be for; needed with OPENSKILL_JWT_JWKS; unset: anybody"`
	JWTClaims       string `env:"OPENSKILL_JWT_CLAIMS" flag:"jwt-claims" accepts:"entries between semicolons or line ends: tenant, scopes, roles or name, = and a claim; for scopes and roles several with commas between them, like tenant=tid; scopes=scp; roles=realm_access.roles" doc:"names of the claims that a JWT has; unset: tenant=tenant; scopes=scope; name=name, and no roles"`
	JWTTenant       string `env:"OPENSKILL_JWT_TENANT" flag:"jwt-tenant" accepts:"1 to 64 characters of letters, digits and . _ : -" doc:"tenant of JWTs that have no claim for it; unset: such JWTs are refused"`
	JWTRoles        string `env:"OPENSKILL_JWT_ROLES" flag:"jwt-roles" accepts:"entries between semicolons or line ends: a role, = and scopes with commas between them, like staff=skills:read,skills:invoke; * stands for every JWT" doc:"scopes of the roles that a JWT has; unset: roles give no scopes"`
	JWTSkewS        uint64 `env:"OPENSKILL_JWT_SKEW_S" envDefault:"30" flag:"jwt-skew-s" min:"0" max:"300" doc:"how far clocks may be apart when times of a JWT are checked, in seconds"`

	OIDCClientID     string `env:"OPENSKILL_OIDC_CLIENT_ID" flag:"oidc-client-id" accepts:"a client id; OPENSKILL_JWT_ISSUER, OPENSKILL_JWT_JWKS and OPENSKILL_HTTP_BASE_URL must be set too" doc:"client id of this host at the OpenID provider where people sign in to the console; unset: they sign in by API key or JWT"`
	OIDCClientSecret string `env:"OPENSKILL_OIDC_CLIENT_SECRET" accepts:"a client secret" doc:"client secret of this host at the OpenID provider; unset: none, as for public clients"`
	OIDCScopes       string `env:"OPENSKILL_OIDC_SCOPES" envDefault:"openid,profile" flag:"oidc-scopes" accepts:"scopes with commas between them, openid among them" doc:"scopes that the console asks the OpenID provider for, and clients of MCP where OPENSKILL_JWT_ROLES is set"`

	DatabaseURL    string       `env:"OPENSKILL_DATABASE_URL" accepts:"postgres://… or sqlite:FILE" doc:"where keys, records and definitions are kept; unset: a SQLite file in the state folder"`
	AuditPayload   AuditPayload `env:"OPENSKILL_AUDIT_PAYLOAD" envDefault:"hash" flag:"audit-payload" accepts:"none, hash, redacted or full" doc:"what the record of a call keeps of input and output"`
	AuditPayloadKB uint64       `env:"OPENSKILL_AUDIT_PAYLOAD_KB" envDefault:"16" flag:"audit-payload-kb" min:"1" max:"1024" doc:"most that it keeps of either, in KiB"`
	AuditDays      uint64       `env:"OPENSKILL_AUDIT_DAYS" envDefault:"400" flag:"audit-days" min:"1" max:"36500" doc:"how long records are kept, in days"`
	AuditMB        uint64       `env:"OPENSKILL_AUDIT_MB" envDefault:"102400" flag:"audit-mb" min:"1" max:"16777216" doc:"records of one tenant, in MiB; at the bound its calls are refused until old ones are removed"`
	ResultMinutes  uint64       `env:"OPENSKILL_RESULT_MINUTES" envDefault:"60" flag:"result-minutes" min:"1" max:"43200" doc:"how long results of long calls, and artifacts, are kept, in minutes"`
	KeepLogs       KeepLogs     `env:"OPENSKILL_KEEP_LOGS" envDefault:"none" flag:"keep-logs" accepts:"none, failed or all" doc:"of which runs the end of what they wrote to standard error is kept, as long as artifacts"`
	Record         Record       `env:"OPENSKILL_RECORD" envDefault:"off" flag:"record" accepts:"off or on" doc:"whether all that a run was given is kept, so that it can be replayed"`
	RecordMB       uint64       `env:"OPENSKILL_RECORD_MB" envDefault:"16" flag:"record-mb" min:"1" max:"128" doc:"most that is kept of one run to replay it, in MiB"`
	RecordingsMB   uint64       `env:"OPENSKILL_RECORDINGS_MB" envDefault:"1024" flag:"recordings-mb" min:"128" max:"16777216" doc:"recordings of one tenant's runs that are kept, in MiB; more drop its oldest"`

	RateTenant           int    `env:"OPENSKILL_RATE_TENANT" envDefault:"6000000" flag:"rate-tenant" min:"1" max:"100000000" reload:"yes" doc:"calls of one tenant a minute"`
	RatePrincipal        int    `env:"OPENSKILL_RATE_PRINCIPAL" envDefault:"6000000" flag:"rate-principal" min:"1" max:"100000000" reload:"yes" doc:"calls of one principal a minute"`
	RateRequests         int    `env:"OPENSKILL_RATE_REQUESTS" envDefault:"30000" flag:"rate-requests" min:"1" max:"100000000" reload:"yes" doc:"requests of one principal a minute that are not calls, and of one address without a valid credential; a tenant has twice as many"`
	ConcurrencyTenant    int    `env:"OPENSKILL_CONCURRENCY_TENANT" envDefault:"0" flag:"concurrency-tenant" min:"0" max:"8192" reload:"yes" doc:"calls of one tenant that run at once, where callers show who they are; 0: as many as its share of OPENSKILL_CONCURRENCY, which bounds it in any case"`
	ConcurrencyPrincipal int    `env:"OPENSKILL_CONCURRENCY_PRINCIPAL" envDefault:"0" flag:"concurrency-principal" min:"0" max:"8192" reload:"yes" doc:"calls of one principal that run at once, where callers show who they are; 0: as many as the share of its tenant, which bounds it in any case"`
	DailyExecutions      uint64 `env:"OPENSKILL_DAILY_EXECUTIONS" envDefault:"1000000000" flag:"daily-executions" min:"1" max:"1000000000000" reload:"yes" doc:"runs of one tenant a day (UTC)"`
	DailyFuel            uint64 `env:"OPENSKILL_DAILY_FUEL" envDefault:"1000000000000000000" flag:"daily-fuel" min:"1" max:"4611686018427387904" reload:"yes" doc:"fuel of one tenant a day (UTC), in units"`
	DailyModelRequests   uint64 `env:"OPENSKILL_DAILY_MODEL_REQUESTS" envDefault:"10000" flag:"daily-model-requests" min:"1" max:"1000000000000" reload:"yes" doc:"questions of one tenant to models a day (UTC)"`
	DailyModelTokens     uint64 `env:"OPENSKILL_DAILY_MODEL_TOKENS" envDefault:"20000000" flag:"daily-model-tokens" min:"1" max:"1000000000000000" reload:"yes" doc:"tokens of one tenant's questions to models a day (UTC), prompts and replies together"`
	DailyModelCents      uint64 `env:"OPENSKILL_DAILY_MODEL_CENTS" envDefault:"10000" flag:"daily-model-cents" min:"1" max:"100000000" reload:"yes" doc:"what one tenant's questions to models may cost a day (UTC), in US cents, as far as their prices are known"`

	SkillsDir       string `env:"OPENSKILL_SKILLS_DIR" envDefault:"./skills" flag:"skills" path:"dir" accepts:"a folder" doc:"folder of trusted skills, each a folder with a skill.yaml"`
	SkillConfigPath string `env:"OPENSKILL_SKILL_CONFIG_PATH" envDefault:"./configs/skills.yaml" flag:"skill-config-path" path:"file" accepts:"a file" doc:"list of trusted skills in one file; their code is in the folder of skills or of scripts"`
	AgentSkills     string `env:"OPENSKILL_AGENT_SKILLS" flag:"agent-skills" accepts:"folders, with the separator of PATH between them" doc:"folders of Agent Skills, the folders with a SKILL.md; unset: the folder of skills"`
	AgentNative     string `env:"OPENSKILL_AGENT_SKILLS_NATIVE" flag:"agent-skills-native" accepts:"one of the folders of Agent Skills" doc:"folder of Agent Skills whose Python scripts run by the CLI runner, outside the sandbox; pulled and untrusted skills in it stay in the sandbox; unset: none"`
	CLIDir          string `env:"OPENSKILL_CLI_DIR" envDefault:"./skills_cli" flag:"cli-dir" path:"dir" accepts:"a folder" doc:"folder of trusted scripts named {id}.py"`
	DataRoot        string `env:"OPENSKILL_ALLOWED_ROOT" envDefault:"./data" flag:"data" path:"dir" accepts:"a folder" doc:"the one folder that skills may read, shown to them as /data (OPENSKILL_DATA_ALLOW says to which); without it skills see no data"`
	StateDir        string `env:"OPENSKILL_STATE_DIR" envDefault:"./.openskill" flag:"state" path:"any" accepts:"a folder outside the data folder; made when missing" doc:"folder of the host's own files: caches, work in progress"`
	Python          string `env:"OPENSKILL_PYTHON" envDefault:"python3" flag:"python" accepts:"the name or path of a Python 3" doc:"interpreter of the CLI runner"`

	TimeoutMS uint64 `env:"OPENSKILL_TIMEOUT_MS" envDefault:"15000" flag:"timeout-ms" min:"1" max:"86400000" doc:"time of one call, in ms, where the manifest says nothing"`
	MemoryMB  uint64 `env:"OPENSKILL_MEMORY_MB" envDefault:"256" flag:"memory-mb" min:"1" max:"2048" doc:"memory of one call, with its files below /work, in MiB, where the manifest says nothing"`
	Fuel      uint64 `env:"OPENSKILL_FUEL" envDefault:"20000000000" flag:"fuel" min:"1" max:"4611686018427387904" doc:"fuel of one call, in units of about an instruction, where the manifest says nothing"`
	OutputKB  uint64 `env:"OPENSKILL_OUTPUT_KB" envDefault:"1024" flag:"output-kb" min:"1" max:"65536" doc:"standard output of one call, in KiB, where the manifest says nothing"`
	ScratchMB uint64 `env:"OPENSKILL_SCRATCH_MB" envDefault:"16" flag:"scratch-mb" min:"1" max:"65536" doc:"files of one call below /work, in MiB, where the manifest says nothing"`

	MaxTimeoutMS uint64 `env:"OPENSKILL_MAX_TIMEOUT_MS" envDefault:"120000" flag:"max-timeout-ms" min:"1" max:"86400000" doc:"most time that any call gets, in ms"`
	MaxMemoryMB  uint64 `env:"OPENSKILL_MAX_MEMORY_MB" envDefault:"1024" flag:"max-memory-mb" min:"1" max:"2048" doc:"most memory that any call gets, with its files below /work, in MiB"`
	MaxFuel      uint64 `env:"OPENSKILL_MAX_FUEL" envDefault:"1000000000000" flag:"max-fuel" min:"1" max:"4611686018427387904" doc:"most fuel that any call gets, in units"`
	MaxOutputKB  uint64 `env:"OPENSKILL_MAX_OUTPUT_KB" envDefault:"16384" flag:"max-output-kb" min:"1" max:"65536" doc:"most standard output that any call gets, in KiB"`
	MaxScratchMB uint64 `env:"OPENSKILL_MAX_SCRATCH_MB" envDefault:"64" flag:"max-scratch-mb" min:"1" max:"65536" doc:"most scratch that any call gets, in MiB"`

	MaxBodyKB           uint64 `env:"OPENSKILL_MAX_BODY_KB" envDefault:"1024" flag:"max-body-kb" min:"1" max:"65536" doc:"largest body of a request, in KiB"`
	Concurrency         int    `env:"OPENSKILL_CONCURRENCY" envDefault:"32" flag:"concurrency" min:"1" max:"4096" reload:"yes" doc:"calls that run at once; more wait a moment and are then refused with 429"`
	ConcurrencyPerSkill int    `env:"OPENSKILL_CONCURRENCY_PER_SKILL" envDefault:"16" flag:"concurrency-per-skill" min:"1" max:"4096" reload:"yes" doc:"calls of one skill that run at once"`

	Workers        Isolation `env:"OPENSKILL_WORKERS" envDefault:"tenant" flag:"workers" accepts:"tenant, skill, shared or off" doc:"whose calls share a worker process: those of a tenant, of a skill, or all; off: skills run in the host's own process"`
	WorkersMax     int       `env:"OPENSKILL_WORKERS_MAX" envDefault:"32" flag:"workers-max" min:"1" max:"4096" doc:"worker processes at once, shared between tenants; an idle one of the tenant with most makes room for another"`
	WorkersSpare   int       `env:"OPENSKILL_WORKERS_SPARE" envDefault:"1" flag:"workers-spare" min:"0" max:"64" doc:"worker processes that are kept ready for a tenant (or skill) that comes"`
	WorkerMemoryMB uint64    `env:"OPENSKILL_WORKER_MEMORY_MB" envDefault:"2048" flag:"worker-memory-mb" min:"128" max:"1048576" doc:"memory of one worker process, in MiB; the kernel ends one that goes beyond, where it can be told to"`
	WorkerCalls    int       `env:"OPENSKILL_WORKER_CALLS" envDefault:"10000" flag:"worker-calls" min:"1" max:"1000000000" doc:"calls after which a worker process is replaced"`
	WorkerLandlock bool      `env:"OPENSKILL_WORKER_LANDLOCK" envDefault:"1" flag:"worker-landlock" accepts:"0 or 1" doc:"whether the kernel keeps worker processes from files (Landlock)"`
	WorkerSeccomp  bool      `env:"OPENSKILL_WORKER_SECCOMP" envDefault:"1" flag:"worker-seccomp" accepts:"0 or 1" doc:"whether the kernel keeps worker processes from system calls that they do not need (seccomp)"`

	ScriptApproval Approval `env:"OPENSKILL_SCRIPT_APPROVAL" envDefault:"never" flag:"script-approval" accepts:"never, version or call" doc:"when a person must approve that a script of an Agent Skill runs: never, once for each version of the skill, or for each call"`

	HTTPAllow string `env:"OPENSKILL_HTTP_ALLOW" flag:"http-allow" accepts:"entries between semicolons or line ends, like https://api.example.com/v1/ GET,POST; for an upload @tenant/skill before it" reload:"yes" doc:"requests that skills may make, of those that their manifests ask for; unset: none"`
	EnvAllow  string `env:"OPENSKILL_ENV_ALLOW" flag:"env-allow" accepts:"entries between semicolons or line ends, each NAME=value, or NAME of a variable of the host; for an upload @tenant/skill before it" reload:"yes" secret:"yes" doc:"variables that skills may be given, of those that their manifests ask for; unset: none"`

	DataAllow string `env:"OPENSKILL_DATA_ALLOW" flag:"data-allow" accepts:"entries between semicolons or line ends, each @tenant/skill for an upload or @skill for one of your own, and after it a folder below the data folder; without a folder: all of it" reload:"yes" doc:"data that skills may read, of those whose manifests ask for it; unset: your own skills read all of the data folder, uploads and pulled skills of strangers nothing"`

	TrustPolicy string `env:"OPENSKILL_TRUST_POLICY" flag:"trust-policy" path:"file" accepts:"a file" reload:"yes" doc:"file that says whose skills are accepted when they are pulled; unset: nobody's, unless a command names keys"`
	PullHosts   string `env:"OPENSKILL_PULL_HOSTS" flag:"pull-hosts" accepts:"hosts with commas between them, each with its port if it is not 443" reload:"yes" doc:"registries, and the hosts that they lead to, from which uploads may be pulled (POST /skills with a reference); needs a trust policy; unset: none"`

	UploadMB          uint64 `env:"OPENSKILL_UPLOAD_MB" envDefault:"32" flag:"upload-mb" min:"1" max:"1024" doc:"largest archive or module that is uploaded, in MiB"`
	UploadSkills      int    `env:"OPENSKILL_UPLOAD_SKILLS" envDefault:"100" flag:"upload-skills" min:"1" max:"100000" doc:"uploaded skills of one tenant"`
	UploadVersions    int    `env:"OPENSKILL_UPLOAD_VERSIONS" envDefault:"20" flag:"upload-versions" min:"1" max:"10000" doc:"versions of one uploaded skill, those included that are deleted and still on disk"`
	UploadQuotaMB     uint64 `env:"OPENSKILL_UPLOAD_QUOTA_MB" envDefault:"1024" flag:"upload-quota-mb" min:"1" max:"1048576" doc:"files of all uploads of one tenant, in MiB, those included that are deleted and still on disk"`
	UploadGraceS      uint64 `env:"OPENSKILL_UPLOAD_GRACE_S" envDefault:"600" flag:"upload-grace-s" min:"1" max:"31536000" doc:"time from the deletion of a version to that of its files, in seconds; longer than the longest call"`
	QuarantineCrashes int    `env:"OPENSKILL_QUARANTINE_CRASHES" envDefault:"2" flag:"quarantine-crashes" min:"1" max:"1000000" doc:"crashes of its worker within ten minutes after which an uploaded version is quarantined"`
	QuarantineLimits  int    `env:"OPENSKILL_QUARANTINE_LIMITS" envDefault:"20" flag:"quarantine-limits" min:"1" max:"1000000" doc:"runs in a row, ended by a limit, after which an uploaded version is quarantined"`

	Agent

	Traces           Traces `env:"OPENSKILL_TRACES" envDefault:"off" flag:"traces" accepts:"off, file or otlp" doc:"where traces of calls go: into files of the state folder, or to a collector (in builds with the tag otlp)"`
	TracesPerMillion int    `env:"OPENSKILL_TRACES_PER_MILLION" envDefault:"1000000" flag:"traces-per-million" min:"1" max:"1000000" doc:"how many of a million traces are kept"`
	TracesMB         int64  `env:"OPENSKILL_TRACES_MB" envDefault:"64" flag:"traces-mb" min:"2" max:"65536" doc:"most that files of traces take, in MiB; the oldest go first"`
	AdminListen      string `env:"OPENSKILL_ADMIN_LISTEN" flag:"admin-listen" accepts:"host:port with a loopback host, like 127.0.0.1:8001; port 0 takes a free one" doc:"address of the profiles (pprof) and metrics for who looks into a running host; unset: there is none"`

	Debug bool `env:"OPENSKILL_DEBUG" envDefault:"0" flag:"debug" accepts:"0 or 1" reload:"yes" doc:"log at the level debug"`

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
