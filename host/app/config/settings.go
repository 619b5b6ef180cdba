package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
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

// The values of OTEL_TRACES_EXPORTER.
const (
	TracesNone Traces = "none"
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
	Listen          string `env:"OPENSKILL_LISTEN" default:"127.0.0.1:8000" flag:"listen" accepts:"host:port, like 127.0.0.1:8000; port 0 takes a free one; other hosts than loopback need authentication" doc:"listen address of the host"`
	HTTPBaseURL     string `env:"OPENSKILL_HTTP_BASE_URL" default:"http://127.0.0.1:8000" flag:"http-base-url" accepts:"an http or https address without query" doc:"public base URL of the host"`
	HTTPOrigins     string `env:"OPENSKILL_HTTP_ORIGINS" flag:"http-origins" accepts:"comma-separated origins, like https://skills.example.com; http only with a loopback host" doc:"additional browser origins of the host, besides that of OPENSKILL_HTTP_BASE_URL; default: none"`
	TrustedProxies  string `env:"OPENSKILL_TRUSTED_PROXIES" flag:"trusted-proxies" accepts:"addresses and prefixes, separated by commas, like 127.0.0.1,10.0.0.0/8" doc:"reverse proxies whose Forwarded and X-Forwarded-For headers are trusted for the client address; default: none"`
	Auth            Auth   `env:"OPENSKILL_AUTH" flag:"auth" oneof:"none required" doc:"authentication of callers; default: none on loopback, required elsewhere"`
	AnonymousScopes string `env:"OPENSKILL_ANONYMOUS_SCOPES" flag:"anonymous-scopes" accepts:"comma-separated scopes, such as skills:read" doc:"scopes of unauthenticated callers when authentication is required; default: none"`
	JWTSecret       string `env:"OPENSKILL_JWT_SECRET" accepts:"32 bytes or more" doc:"HS256 secret for JWTs; default: none, such JWTs are rejected"`
	JWTJWKS         string `env:"OPENSKILL_JWT_JWKS" flag:"jwt-jwks" accepts:"a file, or an https address" doc:"public keys (JWKS) for JWTs signed with RS256, ES256 or EdDSA; default: none, such JWTs are rejected"`
	JWTIssuer       string `env:"OPENSKILL_JWT_ISSUER" flag:"jwt-issuer" accepts:"the claim iss" doc:"required issuer (iss) of JWTs; needed with OPENSKILL_JWT_JWKS; default: any issuer that has OPENSKILL_JWT_SECRET"`
	JWTAudience     string `env:"OPENSKILL_JWT_AUDIENCE" flag:"jwt-audience" accepts:"the claim aud" doc:"required audience (aud) of JWTs; needed with OPENSKILL_JWT_JWKS; default: any"`
	JWTClaims       string `env:"OPENSKILL_JWT_CLAIMS" flag:"jwt-claims" accepts:"entries separated by semicolons or line ends: tenant, scopes, roles or name, = and a claim; for scopes and roles several, comma-separated, like tenant=tid; scopes=scp; roles=realm_access.roles" doc:"claim names in JWTs; default: tenant=tenant; scopes=scope; name=name, and no roles"`
	JWTTenant       string `env:"OPENSKILL_JWT_TENANT" flag:"jwt-tenant" accepts:"1 to 64 characters of letters, digits and . _ : -" doc:"tenant of JWTs without a tenant claim; default: none, such JWTs are rejected"`
	JWTRoles        string `env:"OPENSKILL_JWT_ROLES" flag:"jwt-roles" accepts:"entries separated by semicolons or line ends: a role, = and comma-separated scopes, like staff=skills:read,skills:invoke; * stands for every JWT" doc:"scopes granted by JWT roles; default: none"`

	OIDCClientID     string `env:"OPENSKILL_OIDC_CLIENT_ID" flag:"oidc-client-id" accepts:"a client id; OPENSKILL_JWT_ISSUER, OPENSKILL_JWT_JWKS and OPENSKILL_HTTP_BASE_URL must be set too" doc:"OpenID client id for sign-in to the console; default: none, sign-in by API key or JWT"`
	OIDCClientSecret string `env:"OPENSKILL_OIDC_CLIENT_SECRET" accepts:"a client secret" doc:"OpenID client secret; default: none, as for public clients"`
	OIDCScopes       string `env:"OPENSKILL_OIDC_SCOPES" default:"openid,profile" flag:"oidc-scopes" accepts:"comma-separated scopes, including openid" doc:"scopes requested from the OpenID provider by the console, and by MCP clients when OPENSKILL_JWT_ROLES is set"`

	DatabaseURL   string       `env:"OPENSKILL_DATABASE_URL" accepts:"postgres://… or sqlite:FILE" doc:"database of keys, records and definitions; default: a SQLite file in the state folder. records=database, host or disk in the query says where the record of a call is before the call goes on"`
	AuditPayload  AuditPayload `env:"OPENSKILL_AUDIT_PAYLOAD" default:"hash" flag:"audit-payload" oneof:"none hash redacted full" doc:"input and output stored in call records"`
	KeepLogs      KeepLogs     `env:"OPENSKILL_KEEP_LOGS" default:"none" flag:"keep-logs" oneof:"none failed all" doc:"executions whose standard error tail is stored, for as long as artifacts"`
	Record        Record       `env:"OPENSKILL_RECORD" default:"off" flag:"record" oneof:"off on" doc:"recording of executions for replay"`
	ResultMinutes uint64       `env:"OPENSKILL_RESULT_MINUTES" default:"60" flag:"result-minutes" min:"1" max:"43200" doc:"retention of artifacts and results of long calls in minutes"`
	AuditDays     uint64       `env:"OPENSKILL_RETENTION_DAYS" part:"records" default:"400" flag:"retention-days" min:"1" max:"36500" about:"retention in days" doc:"call records and executions"`
	AgentDays     uint64       `part:"conversations" default:"30" min:"1" max:"36500" doc:"conversations and tasks, since their last change"`
	AuditMB       uint64       `env:"OPENSKILL_STORAGE_MB" part:"records" default:"102400" flag:"storage-mb" min:"1" max:"16777216" about:"maximum storage of a tenant in MiB" doc:"call records; when full, calls are refused until old records are removed"`
	RecordingsMB  uint64       `part:"recordings" default:"1024" min:"128" max:"16777216" doc:"recordings of executions; the oldest are removed first"`
	AgentStoredMB uint64       `part:"conversations" default:"256" min:"16" max:"16777216" doc:"conversations; the oldest are removed first"`
	UploadQuotaMB uint64       `part:"uploads" default:"1024" min:"1" max:"1048576" doc:"uploads, including deleted ones still on disk"`

	RateTenant           int    `env:"OPENSKILL_RATE" part:"tenant" flag:"rate" min:"1" max:"100000000" reload:"yes" about:"maximum per minute" doc:"calls of a tenant"`
	RatePrincipal        int    `part:"principal" min:"1" max:"100000000" doc:"calls of a principal"`
	RateRequests         int    `part:"requests" default:"30000" min:"1" max:"100000000" doc:"requests other than calls, of a principal, or of an address without a valid credential; a tenant has twice as many"`
	Concurrency          int    `env:"OPENSKILL_CONCURRENCY" part:"all" default:"32" flag:"concurrency" min:"1" max:"4096" reload:"yes" about:"maximum concurrent calls" doc:"of the host; more are queued briefly, then refused with 429"`
	ConcurrencyPerSkill  int    `part:"skill" default:"16" min:"1" max:"4096" doc:"of a skill"`
	ConcurrencyTenant    int    `part:"tenant" min:"1" max:"8192" doc:"of a tenant, when authentication is required; default: its share of all, which always applies"`
	ConcurrencyPrincipal int    `part:"principal" min:"1" max:"8192" doc:"of a principal, when authentication is required; default: the share of its tenant, which always applies"`
	DailyExecutions      uint64 `env:"OPENSKILL_DAILY" part:"executions" flag:"daily" min:"1" max:"1000000000000" reload:"yes" about:"maximum per tenant and day (UTC)" doc:"runs"`
	DailyFuel            uint64 `part:"fuel" min:"1" max:"4611686018427387904" doc:"fuel, in units"`
	DailyModelRequests   uint64 `part:"model_requests" default:"10000" min:"1" max:"1000000000000" doc:"model requests"`
	DailyModelTokens     uint64 `part:"model_tokens" default:"20000000" min:"1" max:"1000000000000000" doc:"model tokens, prompts and replies together"`
	DailyModelCents      uint64 `part:"model_cents" default:"10000" min:"1" max:"100000000" doc:"model cost in US cents, counting models with known prices"`

	SkillsDir       string `env:"OPENSKILL_SKILLS_DIR" default:"./skills" flag:"skills" path:"dir" accepts:"a folder" doc:"folder of trusted skills, each a folder with a skill.yaml"`
	SkillConfigPath string `env:"OPENSKILL_SKILL_CONFIG_PATH" default:"./configs/skills.yaml" flag:"skill-config-path" path:"file" accepts:"a file" doc:"list of trusted skills in one file; their code is in the folder of skills or of scripts"`
	AgentSkills     string `env:"OPENSKILL_AGENT_SKILLS" flag:"agent-skills" accepts:"folders, separated like those of PATH" doc:"folders of Agent Skills, which have a SKILL.md; default: the folder of skills"`
	AgentNative     string `env:"OPENSKILL_AGENT_SKILLS_NATIVE" flag:"agent-skills-native" accepts:"one of the folders of Agent Skills" doc:"folder of Agent Skills whose Python scripts run outside the sandbox, by the CLI runner; pulled and untrusted skills stay in the sandbox; default: none"`
	CLIDir          string `env:"OPENSKILL_CLI_DIR" default:"./skills_cli" flag:"cli-dir" path:"dir" accepts:"a folder" doc:"folder of trusted scripts named {id}.py"`
	DataRoot        string `env:"OPENSKILL_ALLOWED_ROOT" default:"./data" flag:"data" path:"dir" accepts:"a folder" doc:"data folder that skills may read as /data (OPENSKILL_DATA_ALLOW selects which skills); default: none"`
	StateDir        string `env:"OPENSKILL_STATE_DIR" default:"./.openskill" flag:"state" path:"any" accepts:"a folder outside the data folder; made when missing" doc:"state folder of the host: database, uploads, caches"`
	Python          string `env:"OPENSKILL_PYTHON" default:"python3" flag:"python" accepts:"the name or path of a Python 3" doc:"Python interpreter of the CLI runner"`

	TimeoutMS    uint64 `env:"OPENSKILL_TIMEOUT_MS" part:"default" default:"15000" flag:"timeout-ms" min:"1" max:"86400000" doc:"default and maximum time limit of a call in ms"`
	MaxTimeoutMS uint64 `part:"max" default:"120000" min:"1" max:"86400000"`
	MemoryMB     uint64 `env:"OPENSKILL_MEMORY_MB" part:"default" default:"256" flag:"memory-mb" min:"1" max:"2048" doc:"default and maximum memory limit of a call, including its files below /work, in MiB"`
	MaxMemoryMB  uint64 `part:"max" default:"1024" min:"1" max:"2048"`
	Fuel         uint64 `env:"OPENSKILL_FUEL" part:"default" default:"20000000000" flag:"fuel" min:"1" max:"4611686018427387904" doc:"default and maximum fuel limit of a call, in units of about one instruction"`
	MaxFuel      uint64 `part:"max" default:"1000000000000" min:"1" max:"4611686018427387904"`
	OutputKB     uint64 `env:"OPENSKILL_OUTPUT_KB" part:"default" default:"1024" flag:"output-kb" min:"1" max:"65536" doc:"default and maximum limit of standard output of a call in KiB"`
	MaxOutputKB  uint64 `part:"max" default:"16384" min:"1" max:"65536"`
	ScratchMB    uint64 `env:"OPENSKILL_SCRATCH_MB" part:"default" default:"16" flag:"scratch-mb" min:"1" max:"65536" doc:"default and maximum limit of files of a call below /work in MiB"`
	MaxScratchMB uint64 `part:"max" default:"64" min:"1" max:"65536"`
	MaxBodyKB    uint64 `env:"OPENSKILL_MAX_BODY_KB" default:"1024" flag:"max-body-kb" min:"1" max:"65536" doc:"maximum request body in KiB"`

	Workers        Isolation `env:"OPENSKILL_WORKERS" default:"tenant" flag:"workers" oneof:"tenant skill shared" doc:"sharing of worker processes: per tenant, per skill, or one for all"`
	WorkersMax     int       `env:"OPENSKILL_WORKERS_MAX" default:"0" flag:"workers-max" min:"0" max:"4096" doc:"maximum worker processes, shared between tenants; 0: one for each 80 MiB of memory and 16 threads of the machine or container, at most 1024"`
	WorkerMemoryMB uint64    `env:"OPENSKILL_WORKER_MEMORY_MB" default:"2048" flag:"worker-memory-mb" min:"128" max:"1048576" doc:"memory limit of a worker process in MiB; the kernel kills one that exceeds it, where control groups are available"`

	// InProcess has skills run in the host's own process, without worker processes. No source of
	// settings has it: tests and benchmarks set it.
	InProcess bool

	ScriptApproval Approval `env:"OPENSKILL_SCRIPT_APPROVAL" default:"never" flag:"script-approval" oneof:"never version call" doc:"approvals required for scripts of Agent Skills: never, once per version of the skill, or for each call"`
	HTTPAllow      string   `env:"OPENSKILL_HTTP_ALLOW" flag:"http-allow" accepts:"entries separated by semicolons or line ends, like https://api.example.com/v1/ GET,POST; for an upload @tenant/skill before it" reload:"yes" doc:"HTTP requests granted to skills whose manifests ask for them, and to scripts of an Agent Skill that an entry names by @skill; default: none"`
	EnvAllow       string   `env:"OPENSKILL_ENV_ALLOW" flag:"env-allow" accepts:"entries separated by semicolons or line ends, each NAME=value, or NAME of a variable of the host; for an upload @tenant/skill before it" secret:"yes" reload:"yes" doc:"environment variables granted to skills whose manifests ask for them, and to scripts of an Agent Skill that an entry names by @skill; default: none"`
	DataAllow      string   `env:"OPENSKILL_DATA_ALLOW" flag:"data-allow" accepts:"entries separated by semicolons or line ends, each @tenant/skill for an upload or @skill for one of your own, and after it a folder below the data folder; without a folder: all of it" reload:"yes" doc:"data granted to skills whose manifests ask for it; default: the whole data folder for your own skills, nothing for uploads and pulled skills of strangers"`
	TrustPolicy    string   `env:"OPENSKILL_TRUST_POLICY" flag:"trust-policy" path:"file" accepts:"a file" reload:"yes" doc:"trust policy file: accepted publishers of pulled skills; default: none, unless a command names keys"`
	PullHosts      string   `env:"OPENSKILL_PULL_HOSTS" flag:"pull-hosts" accepts:"comma-separated hosts, each with its port unless it is 443" reload:"yes" doc:"registries, and hosts that they redirect to, for uploads by reference (POST /skills); needs a trust policy; default: none"`
	Webhooks       string   `env:"OPENSKILL_WEBHOOKS" flag:"webhooks" accepts:"public for all https addresses of public networks; or comma-separated origins, like https://hooks.example.com; http only with a loopback host" doc:"where webhooks of callers may send; default: nowhere"`
	UploadMB       uint64   `env:"OPENSKILL_UPLOADS" part:"mb" default:"32" flag:"uploads" min:"1" max:"1024" about:"limits of uploads" doc:"size of an archive or module in MiB"`
	UploadSkills   int      `part:"skills" default:"100" min:"1" max:"100000" doc:"skills of a tenant"`
	UploadVersions int      `part:"versions" default:"20" min:"1" max:"10000" doc:"versions of a skill, including deleted ones still on disk"`

	OpenAIKey      string `env:"OPENSKILL_PROVIDERS" part:"openai.key" short:"OPENAI_API_KEY" accepts:"the key" secret:"yes" about:"model providers" doc:"API key of OpenAI or a compatible server; default: none, the provider is off unless its address is set"`
	OpenAIBase     string `part:"openai.base" short:"OPENAI_API_BASE" default:"https://api.openai.com/v1" accepts:"an http or https address" doc:"base URL of OpenAI's API or a compatible server"`
	OpenAIModel    string `part:"openai.model" short:"OPENAI_MODEL" default:"gpt-4" accepts:"the name of a model" doc:"model of the provider openai"`
	DashScopeKey   string `part:"dashscope.key" short:"DASHSCOPE_API_KEY" accepts:"the key" secret:"yes" doc:"API key of DashScope; default: none, the provider is off"`
	DashScopeBase  string `part:"dashscope.base" short:"DASHSCOPE_API_BASE" default:"https://dashscope.aliyuncs.com/compatible-mode/v1" accepts:"an http or https address" doc:"base URL of DashScope's API"`
	DashScopeModel string `part:"dashscope.model" short:"DASHSCOPE_MODEL" default:"qwen-plus" accepts:"the name of a model" doc:"model of the provider dashscope"`
	DeepSeekKey    string `part:"deepseek.key" short:"DEEPSEEK_API_KEY" accepts:"the key" secret:"yes" doc:"API key of DeepSeek; default: none, the provider is off"`
	DeepSeekBase   string `part:"deepseek.base" short:"DEEPSEEK_API_BASE" default:"https://api.deepseek.com/v1" accepts:"an http or https address" doc:"base URL of DeepSeek's API"`
	DeepSeekModel  string `part:"deepseek.model" short:"DEEPSEEK_MODEL" default:"deepseek-chat" accepts:"the name of a model" doc:"model of the provider deepseek"`
	AnthropicKey   string `part:"anthropic.key" short:"ANTHROPIC_API_KEY" accepts:"the key" secret:"yes" doc:"API key of Anthropic; default: none, the provider is off unless its address is set"`
	AnthropicBase  string `part:"anthropic.base" short:"ANTHROPIC_API_BASE" default:"https://api.anthropic.com" accepts:"an http or https address" doc:"base URL of Anthropic's API"`
	AnthropicModel string `part:"anthropic.model" short:"ANTHROPIC_MODEL" default:"claude-sonnet-4-5" accepts:"the name of a model" doc:"model of the provider anthropic"`
	LLMServiceURL  string `part:"llm-service.base" short:"OPENSKILL_LLM_SERVICE_URL" accepts:"an http or https address" doc:"base URL of a service that chooses models by slot (POST /api/llm/chat); default: none"`
	LLMServiceKey  string `part:"llm-service.key" short:"OPENSKILL_LLM_SERVICE_KEY" accepts:"the key" secret:"yes" doc:"API key of that service, sent as X-API-Key; default: none"`

	AgentProvider    string `env:"OPENSKILL_AGENT_PROVIDER" part:"all" flag:"agent-provider" accepts:"openai, dashscope, deepseek, anthropic, llm-service or rules" about:"model providers of the agent" doc:"default; default: the first configured one"`
	AgentFast        string `part:"fast" accepts:"PROVIDER or PROVIDER:MODEL" doc:"conversations"`
	AgentReasoning   string `part:"reasoning" accepts:"PROVIDER or PROVIDER:MODEL" doc:"tasks"`
	AgentModels      string `env:"OPENSKILL_AGENT_MODELS" flag:"agent-models" accepts:"comma-separated PROVIDER:MODEL" doc:"additional models that callers may select; the operator may select any"`
	AgentPrices      string `env:"OPENSKILL_AGENT_PRICES" flag:"agent-prices" accepts:"entries separated by semicolons, like gpt-4o=2.5/10" reload:"yes" doc:"model prices in US dollars per million tokens of prompt and of reply"`
	AgentIterations  int    `env:"OPENSKILL_AGENT_LIMITS" part:"iterations" default:"10" flag:"agent-limits" min:"1" max:"1000" about:"limits of a turn of a conversation, and of a task" doc:"rounds, each a model request"`
	AgentToolCalls   int    `part:"tool_calls" default:"32" min:"1" max:"10000" doc:"tool calls"`
	AgentTokens      int    `part:"tokens" default:"65536" min:"1" max:"100000000" doc:"tokens of a turn, prompts and replies together"`
	TaskTokens       int    `part:"task_tokens" default:"8192" min:"1" max:"100000000" doc:"the same of a task"`
	AgentReplyTokens int    `part:"reply_tokens" default:"4096" min:"1" max:"1000000" doc:"tokens of one reply in a conversation"`
	AgentCents       uint64 `part:"cents" min:"1" max:"100000000" doc:"model cost in US cents; if set, models without a price are refused"`
	AgentFuel        uint64 `part:"fuel" default:"1000000000000" min:"1" max:"4611686018427387904" doc:"fuel of all calls, in units"`
	AgentTimeoutS    uint64 `part:"timeout_s" default:"300" min:"1" max:"86400" doc:"seconds of a turn, and of a task that names no limit"`
	TaskMaxTimeoutS  uint64 `part:"max_timeout_s" default:"600" min:"1" max:"86400" doc:"seconds that a task may name"`
	LLMTimeoutS      uint64 `part:"model_timeout_s" default:"60" min:"1" max:"3600" doc:"seconds of one model reply"`
	TaskIterationS   uint64 `part:"round_timeout_s" default:"60" min:"1" max:"86400" doc:"seconds of one round of a task, model and skill together"`
	AgentHistory     int    `part:"history" default:"20" min:"2" max:"10000" doc:"messages of a conversation sent to the model"`
	AgentTurns       int    `part:"concurrent" default:"1024" min:"1" max:"100000" doc:"concurrent turns and tasks; more are refused with 429"`
	TaskKinds        string `env:"OPENSKILL_TASK_KINDS" flag:"task-kinds" accepts:"entries separated by semicolons or line ends: a kind, = and comma-separated limits, like summary=iterations:3,tokens:2000,timeout_s:60; none above iterations, task_tokens and max_timeout_s of OPENSKILL_AGENT_LIMITS" doc:"limits of tasks by their kind (options.kind); default: no kinds"`

	Traces      Traces  `env:"OTEL_TRACES_EXPORTER" default:"none" flag:"otel-traces-exporter" oneof:"none file otlp" doc:"destination of call traces: files in the state folder, or a collector that OTEL_EXPORTER_OTLP_ENDPOINT names (in builds with the tag otlp)"`
	TracesRatio float64 `env:"OTEL_TRACES_SAMPLER_ARG" default:"1" flag:"otel-traces-sampler-arg" accepts:"a number from 0 to 1" doc:"ratio of traces that are stored, chosen by their ids"`
	AdminListen string  `env:"OPENSKILL_ADMIN_LISTEN" flag:"admin-listen" accepts:"host:port with a loopback host, like 127.0.0.1:8001; port 0 takes a free one" doc:"listen address of profiles (pprof) and metrics for operators; default: none"`

	Debug bool `env:"OPENSKILL_DEBUG" default:"0" flag:"debug" accepts:"0 or 1" reload:"yes" doc:"debug logging"`

	allowed *grants.Allowed
	prices  llm.Prices
	origins map[string]Source
	places  map[string]string // what Source says, as messages have it: with file and line
	unknown []string
	renamed []Renamed
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
			return nil, fmt.Errorf("has %q, which is neither an exact https origin nor an http one with a loopback host", skill.CleanText(entry, 80))
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

// WebhooksTo is where OPENSKILL_WEBHOOKS permits webhooks: at all public addresses, or at some origins.
func (s *Settings) WebhooksTo() (public bool, origins []string) {
	if s.Webhooks == "public" {
		return true, nil
	}
	origins, _ = parseOrigins(s.Webhooks) // Load has checked it
	return false, origins
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

var sources = []Source{FromFlag, FromEnv, FromDotEnv, FromFile, FromDefault}

// Origin says where the value of a setting came from, by its name in the environment, or
// that of a part of it, as in OPENSKILL_DAILY.fuel.
func (s *Settings) Origin(env string) Source { return s.origins[env] }

// Renamed lists settings that were given by an old name.
func (s *Settings) Renamed() []Renamed { return s.renamed }

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

// Local reports whether only this machine reaches the host.
func (s *Settings) Local() bool {
	host, _ := address(s.Listen)
	return loopback(host)
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

// Anonymous are the scopes of callers who show nothing; nil: none.
func (s *Settings) Anonymous() []string {
	return scopeList(s.AnonymousScopes)
}

// AuditRetention is how long records are kept.
func (s *Settings) AuditRetention() time.Duration {
	return time.Duration(s.AuditDays) * 24 * time.Hour // at most a century by its range
}

// ResultTime is how long results of long calls are kept.
func (s *Settings) ResultTime() time.Duration {
	return time.Duration(s.ResultMinutes) * time.Minute // at most a month by its range
}
