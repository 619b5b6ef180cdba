package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"openskill/host/agent/llm"
	"openskill/host/catalogue/manifest/safeyaml"
	"openskill/sdk/skill"
)

// Agent are the settings of models, and of the agent that has them call skills.
type Agent struct {
	OpenAIKey      string `env:"OPENAI_API_KEY" accepts:"the key" doc:"API key of OpenAI or a compatible server; default: none, the provider is off unless its address is set"`
	OpenAIBase     string `env:"OPENAI_API_BASE" envDefault:"https://api.openai.com/v1" flag:"openai-api-base" accepts:"an http or https address" doc:"base URL of OpenAI's API or a compatible server"`
	OpenAIModel    string `env:"OPENAI_MODEL" envDefault:"gpt-4" flag:"openai-model" accepts:"the name of a model" doc:"model of the provider openai"`
	DashScopeKey   string `env:"DASHSCOPE_API_KEY" accepts:"the key" doc:"API key of DashScope; default: none, the provider is off"`
	DashScopeBase  string `env:"DASHSCOPE_API_BASE" envDefault:"https://dashscope.aliyuncs.com/compatible-mode/v1" flag:"dashscope-api-base" accepts:"an http or https address" doc:"base URL of DashScope's API"`
	DashScopeModel string `env:"DASHSCOPE_MODEL" envDefault:"qwen-plus" flag:"dashscope-model" accepts:"the name of a model" doc:"model of the provider dashscope"`
	DeepSeekKey    string `env:"DEEPSEEK_API_KEY" accepts:"the key" doc:"API key of DeepSeek; default: none, the provider is off"`
	DeepSeekBase   string `env:"DEEPSEEK_API_BASE" envDefault:"https://api.deepseek.com/v1" flag:"deepseek-api-base" accepts:"an http or https address" doc:"base URL of DeepSeek's API"`
	DeepSeekModel  string `env:"DEEPSEEK_MODEL" envDefault:"deepseek-chat" flag:"deepseek-model" accepts:"the name of a model" doc:"model of the provider deepseek"`
	AnthropicKey   string `env:"ANTHROPIC_API_KEY" accepts:"the key" doc:"API key of Anthropic; default: none, the provider is off unless its address is set"`
	AnthropicBase  string `env:"ANTHROPIC_API_BASE" envDefault:"https://api.anthropic.com" flag:"anthropic-api-base" accepts:"an http or https address" doc:"base URL of Anthropic's API"`
	AnthropicModel string `env:"ANTHROPIC_MODEL" envDefault:"claude-sonnet-4-5" flag:"anthropic-model" accepts:"the name of a model" doc:"model of the provider anthropic"`
	LLMServiceURL  string `env:"OPENSKILL_LLM_SERVICE_URL" flag:"llm-service-url" accepts:"an http or https address" doc:"base URL of a service that chooses models by slot (POST /api/llm/chat); default: none"`
	LLMServiceKey  string `env:"OPENSKILL_LLM_SERVICE_KEY" accepts:"the key" doc:"API key of that service, sent as X-API-Key; default: none"`

	AgentProvider  string `env:"OPENSKILL_AGENT_PROVIDER" flag:"agent-provider" accepts:"openai, dashscope, deepseek, anthropic, llm-service or rules" doc:"default model provider; default: the first configured one"`
	AgentModels    string `env:"OPENSKILL_AGENT_MODELS" flag:"agent-models" accepts:"PROVIDER:MODEL with commas between them" doc:"additional models that callers may select; the operator may select any"`
	AgentFast      string `env:"OPENSKILL_AGENT_FAST" flag:"agent-fast" accepts:"PROVIDER or PROVIDER:MODEL" doc:"model for conversations; default: the provider's own"`
	AgentReasoning string `env:"OPENSKILL_AGENT_REASONING" flag:"agent-reasoning" accepts:"PROVIDER or PROVIDER:MODEL" doc:"model for tasks; default: the provider's own"`
	AgentPrices    string `env:"OPENSKILL_AGENT_PRICES" flag:"agent-prices" accepts:"entries between semicolons, like gpt-4o=2.5/10" reload:"yes" doc:"model prices in US dollars per million tokens of prompt and of reply"`
	LLMTimeoutS    uint64 `env:"OPENSKILL_LLM_TIMEOUT_S" envDefault:"60" flag:"llm-timeout-s" min:"1" max:"3600" doc:"time limit of one model reply in seconds"`

	AgentIterations    int    `env:"OPENSKILL_AGENT_ITERATIONS" envDefault:"10" flag:"agent-iterations" min:"1" max:"1000" doc:"maximum rounds per turn of a conversation, each a model request"`
	AgentToolCalls     int    `env:"OPENSKILL_AGENT_TOOL_CALLS" envDefault:"32" flag:"agent-tool-calls" min:"1" max:"10000" doc:"maximum tool calls per turn, and per task"`
	AgentTokens        int    `env:"OPENSKILL_AGENT_TOKENS" envDefault:"65536" flag:"agent-tokens" min:"1" max:"100000000" doc:"maximum tokens per turn, prompts and replies together"`
	AgentReplyTokens   int    `env:"OPENSKILL_AGENT_REPLY_TOKENS" envDefault:"4096" flag:"agent-reply-tokens" min:"1" max:"1000000" doc:"maximum tokens of one model reply in a conversation"`
	AgentCents         uint64 `env:"OPENSKILL_AGENT_CENTS" envDefault:"100000000" flag:"agent-cents" min:"1" max:"100000000" doc:"maximum model cost per turn or task in US cents; if set, models without a price are refused"`
	AgentFuel          uint64 `env:"OPENSKILL_AGENT_FUEL" envDefault:"1000000000000" flag:"agent-fuel" min:"1" max:"4611686018427387904" doc:"maximum fuel of all calls in one turn or task, in units"`
	AgentTimeoutS      uint64 `env:"OPENSKILL_AGENT_TIMEOUT_S" envDefault:"300" flag:"agent-timeout-s" min:"1" max:"86400" doc:"time limit of one turn in seconds"`
	AgentRetries       int    `env:"OPENSKILL_AGENT_RETRIES" envDefault:"3" flag:"agent-retries" min:"1" max:"100" doc:"maximum consecutive corrections by a model of a call with a wrong tool or wrong arguments"`
	AgentHistory       int    `env:"OPENSKILL_AGENT_HISTORY" envDefault:"20" flag:"agent-history" min:"2" max:"10000" doc:"number of messages of a conversation sent to the model"`
	AgentKeep          int    `env:"OPENSKILL_AGENT_KEEP" envDefault:"200" flag:"agent-keep" min:"2" max:"100000" doc:"number of messages stored per conversation"`
	AgentConversations int    `env:"OPENSKILL_AGENT_CONVERSATIONS" envDefault:"1000" flag:"agent-conversations" min:"1" max:"1000000" doc:"number of conversations stored per principal"`
	AgentDays          uint64 `env:"OPENSKILL_AGENT_DAYS" envDefault:"30" flag:"agent-days" min:"1" max:"36500" doc:"retention of conversations and tasks in days since their last change"`
	AgentStoredMB      uint64 `env:"OPENSKILL_AGENT_STORED_MB" envDefault:"256" flag:"agent-stored-mb" min:"16" max:"16777216" doc:"maximum conversations stored per tenant in MiB; the oldest are removed first"`
	AgentTurns         int    `env:"OPENSKILL_AGENT_TURNS" envDefault:"1024" flag:"agent-turns" min:"1" max:"100000" doc:"maximum concurrent turns and tasks; more are refused with 429"`
	AgentResultKB      uint64 `env:"OPENSKILL_AGENT_RESULT_KB" envDefault:"16" flag:"agent-result-kb" min:"1" max:"1024" doc:"maximum part of one call's result sent to a model in KiB"`

	TaskIterations   int    `env:"OPENSKILL_TASK_ITERATIONS" envDefault:"10" flag:"task-iterations" min:"1" max:"1000" doc:"maximum rounds of one task (POST /api/agent/execute)"`
	TaskTokens       int    `env:"OPENSKILL_TASK_TOKENS" envDefault:"8192" flag:"task-tokens" min:"1" max:"100000000" doc:"maximum tokens per task, prompts and replies together"`
	TaskMinTokens    int    `env:"OPENSKILL_TASK_MIN_TOKENS" envDefault:"500" flag:"task-min-tokens" min:"1" max:"1000000" doc:"minimum remaining tokens for another model request in a task"`
	TaskReplyTokens  int    `env:"OPENSKILL_TASK_REPLY_TOKENS" envDefault:"2048" flag:"task-reply-tokens" min:"1" max:"1000000" doc:"maximum tokens of one model reply in a task"`
	TaskIterationS   uint64 `env:"OPENSKILL_TASK_ITERATION_S" envDefault:"60" flag:"task-iteration-s" min:"1" max:"86400" doc:"time limit of one round of a task in seconds"`
	TaskTimeoutS     uint64 `env:"OPENSKILL_TASK_TIMEOUT_S" envDefault:"300" flag:"task-timeout-s" min:"1" max:"86400" doc:"default time limit of a task in seconds"`
	TaskMaxTimeoutS  uint64 `env:"OPENSKILL_TASK_MAX_TIMEOUT_S" envDefault:"600" flag:"task-max-timeout-s" min:"1" max:"86400" doc:"maximum time limit that a caller may set for a task, in seconds"`
	TaskKinds        string `env:"OPENSKILL_TASK_KINDS" flag:"task-kinds" accepts:"entries between semicolons or line ends: a kind, = and limits with commas between them, like summary=iterations:3,tokens:2000,timeout_s:60; none above OPENSKILL_TASK_ITERATIONS, OPENSKILL_TASK_TOKENS and OPENSKILL_TASK_MAX_TIMEOUT_S" doc:"limits of tasks by their kind (options.kind); unset: there are no kinds"`
	TaskHistory      int    `env:"OPENSKILL_TASK_HISTORY" envDefault:"5" flag:"task-history" min:"1" max:"1000" doc:"number of rounds of a task sent to the model"`
	TaskShortHistory int    `env:"OPENSKILL_TASK_SHORT_HISTORY" envDefault:"3" flag:"task-short-history" min:"1" max:"1000" doc:"number of rounds sent to the model when its remaining tokens are short"`
}

// Providers of models, in the order in which the default is looked for.
const (
	OpenAI     = "openai"
	DashScope  = "dashscope"
	DeepSeek   = "deepseek"
	Anthropic  = "anthropic"
	LLMService = "llm-service"
	Rules      = "rules"
)

// Configured lists the providers that are, those with a model before the rules, which
// always are.
func (s *Settings) Configured() []string {
	var out []string
	for _, p := range []struct {
		name string
		is   bool
	}{
		{OpenAI, s.OpenAIKey != "" || s.Origin("OPENAI_API_BASE") != FromDefault},
		{DashScope, s.DashScopeKey != ""},
		{DeepSeek, s.DeepSeekKey != ""},
		{Anthropic, s.AnthropicKey != "" || s.Origin("ANTHROPIC_API_BASE") != FromDefault},
		{LLMService, s.LLMServiceURL != ""},
		{Rules, true},
	} {
		if p.is {
			out = append(out, p.name)
		}
	}
	return out
}

// Prices are what OPENSKILL_AGENT_PRICES says.
func (s *Settings) Prices() llm.Prices { return s.prices }

// MoneyBounded reports whether the operator has said what a turn, or a tenant's day, may
// cost.
func (s *Settings) MoneyBounded() bool {
	return s.Origin("OPENSKILL_AGENT_CENTS") != FromDefault || s.Origin("OPENSKILL_DAILY_MODEL_CENTS") != FromDefault
}

// Offered are the models of a provider that callers may name beside its own.
func (s *Settings) Offered(provider string) []string {
	var out []string
	for _, entry := range strings.Split(s.AgentModels, ",") {
		if p, model, ok := strings.Cut(strings.TrimSpace(entry), ":"); ok && p == provider && model != "" {
			out = append(out, model)
		}
	}
	return out
}

// Seconds gives a number of seconds of a setting as a time.
func Seconds(n uint64) time.Duration {
	return time.Duration(n) * time.Second // at most a day by the ranges of all such settings
}

// TaskKind are the limits of the tasks of a kind; zero: those of all tasks.
type TaskKind struct {
	Iterations, Tokens int
	Timeout            time.Duration
}

var kindName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// KindsOfTasks are what OPENSKILL_TASK_KINDS says.
func (s *Settings) KindsOfTasks() map[string]TaskKind {
	kinds, _ := s.parseKinds() // Load has checked it
	return kinds
}

func (s *Settings) parseKinds() (map[string]TaskKind, error) {
	kinds := map[string]TaskKind{}
	for entry := range entries(s.TaskKinds) {
		name, list, _ := strings.Cut(entry, "=")
		name = strings.TrimSpace(name)
		_, twice := kinds[name]
		switch {
		case !kindName.MatchString(name) || strings.TrimSpace(list) == "":
			return nil, fmt.Errorf("has the entry %s, which is no kind with limits", safeyaml.Quote(entry))
		case twice:
			return nil, fmt.Errorf("has the kind %s twice", safeyaml.Quote(name))
		}
		var k TaskKind
		var seconds int
		for _, limit := range strings.Split(list, ",") {
			key, value, _ := strings.Cut(limit, ":")
			key = strings.TrimSpace(key)
			to, least, most := &seconds, 1, int(s.TaskMaxTimeoutS) // at most a day by its range
			switch key {
			case "iterations":
				to, most = &k.Iterations, s.TaskIterations
			case "tokens":
				to, least, most = &k.Tokens, s.TaskMinTokens, s.TaskTokens
			case "timeout_s":
			default:
				return nil, fmt.Errorf("has %s, which is none of iterations, tokens and timeout_s", safeyaml.Quote(limit))
			}
			n, err := strconv.Atoi(strings.TrimSpace(value))
			switch {
			case *to != 0:
				return nil, fmt.Errorf("gives the kind %s %s twice", safeyaml.Quote(name), key)
			case err != nil || n < least || n > most:
				return nil, fmt.Errorf("gives the kind %s other %s than a whole number from %d to %d", safeyaml.Quote(name), key, least, most)
			}
			*to = n
		}
		k.Timeout = time.Duration(seconds) * time.Second
		kinds[name] = k
	}
	return kinds, nil
}

// agent checks what its fields' own rules do not say.
func (l *loader) agent(s *Settings) {
	for name, address := range map[string]string{
		"OPENAI_API_BASE": s.OpenAIBase, "DASHSCOPE_API_BASE": s.DashScopeBase, "DEEPSEEK_API_BASE": s.DeepSeekBase,
		"ANTHROPIC_API_BASE": s.AnthropicBase, "OPENSKILL_LLM_SERVICE_URL": s.LLMServiceURL,
	} {
		if address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			l.report("%s (from %s) is no such address; accepted: %s, without user, query and fragment", name, l.values[name].where, l.row(name).Accepts)
		}
	}
	var err error
	if s.prices, err = llm.ParsePrices(s.AgentPrices); err != nil {
		l.wrong(l.row("OPENSKILL_AGENT_PRICES"), "has an entry that cannot be read")
	}
	configured := s.Configured()
	known := func(name string) bool {
		for _, c := range configured {
			if c == name {
				return true
			}
		}
		return false
	}
	for name, value := range map[string]string{
		"OPENSKILL_AGENT_PROVIDER": s.AgentProvider, "OPENSKILL_AGENT_FAST": s.AgentFast, "OPENSKILL_AGENT_REASONING": s.AgentReasoning,
	} {
		if provider, _, _ := strings.Cut(value, ":"); value != "" && !known(provider) {
			l.wrong(l.row(name), fmt.Sprintf("names a provider that is not configured (those that are: %s)", strings.Join(configured, ", ")))
		}
	}
	for _, entry := range strings.Split(s.AgentModels, ",") {
		entry = strings.TrimSpace(entry)
		if provider, model, _ := strings.Cut(entry, ":"); entry != "" && (model == "" || !known(provider) || skill.CleanText(model, 200) != model) {
			l.wrong(l.row("OPENSKILL_AGENT_MODELS"), "has an entry that is no model of a provider that is configured")
		}
	}
	if s.TaskTimeoutS > s.TaskMaxTimeoutS {
		l.report("OPENSKILL_TASK_TIMEOUT_S is %d: more than OPENSKILL_TASK_MAX_TIMEOUT_S, which is %d", s.TaskTimeoutS, s.TaskMaxTimeoutS)
	}
	if s.TaskMinTokens > s.TaskTokens {
		if s.Origin("OPENSKILL_TASK_MIN_TOKENS") != FromDefault {
			l.report("OPENSKILL_TASK_MIN_TOKENS is %d: more than OPENSKILL_TASK_TOKENS, which is %d, so that no task could begin", s.TaskMinTokens, s.TaskTokens)
		}
		s.TaskMinTokens = s.TaskTokens
	}
	if _, err := s.parseKinds(); err != nil {
		l.wrong(l.row("OPENSKILL_TASK_KINDS"), err.Error())
	}
	if s.TaskShortHistory > s.TaskHistory {
		s.TaskShortHistory = s.TaskHistory
	}
}
