package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"openskill/host/llm"
	"openskill/sdk/skill"
)

// Agent are the settings of models, and of the agent that has them call skills.
type Agent struct {
	OpenAIKey      string `env:"OPENAI_API_KEY" accepts:"the key" doc:"key of OpenAI, or of a server that speaks as it does; unset, and no address either: it is not asked"`
	OpenAIBase     string `env:"OPENAI_API_BASE" envDefault:"https://api.openai.com/v1" flag:"openai-api-base" accepts:"an http or https address" doc:"address of OpenAI's API, or of a server that speaks as it does"`
	OpenAIModel    string `env:"OPENAI_MODEL" envDefault:"gpt-4" flag:"openai-model" accepts:"the name of a model" doc:"model of the provider openai"`
	DashScopeKey   string `env:"DASHSCOPE_API_KEY" accepts:"the key" doc:"key of DashScope; unset: it is not asked"`
	DashScopeBase  string `env:"DASHSCOPE_API_BASE" envDefault:"https://dashscope.aliyuncs.com/compatible-mode/v1" flag:"dashscope-api-base" accepts:"an http or https address" doc:"address of DashScope's API"`
	DashScopeModel string `env:"DASHSCOPE_MODEL" envDefault:"qwen-plus" flag:"dashscope-model" accepts:"the name of a model" doc:"model of the provider dashscope"`
	DeepSeekKey    string `env:"DEEPSEEK_API_KEY" accepts:"the key" doc:"key of DeepSeek; unset: it is not asked"`
	DeepSeekBase   string `env:"DEEPSEEK_API_BASE" envDefault:"https://api.deepseek.com/v1" flag:"deepseek-api-base" accepts:"an http or https address" doc:"address of DeepSeek's API"`
	DeepSeekModel  string `env:"DEEPSEEK_MODEL" envDefault:"deepseek-chat" flag:"deepseek-model" accepts:"the name of a model" doc:"model of the provider deepseek"`
	AnthropicKey   string `env:"ANTHROPIC_API_KEY" accepts:"the key" doc:"key of Anthropic; unset, and no address either: it is not asked"`
	AnthropicBase  string `env:"ANTHROPIC_API_BASE" envDefault:"https://api.anthropic.com" flag:"anthropic-api-base" accepts:"an http or https address" doc:"address of Anthropic's API"`
	AnthropicModel string `env:"ANTHROPIC_MODEL" envDefault:"claude-sonnet-4-5" flag:"anthropic-model" accepts:"the name of a model" doc:"model of the provider anthropic"`
	LLMServiceURL  string `env:"OPENSKILL_LLM_SERVICE_URL" flag:"llm-service-url" accepts:"an http or https address" doc:"address of a service that chooses models by slot (POST /api/llm/chat); unset: there is none"`
	LLMServiceKey  string `env:"OPENSKILL_LLM_SERVICE_KEY" accepts:"the key" doc:"key for it, sent as X-API-Key; unset: none"`

	AgentProvider  string `env:"OPENSKILL_AGENT_PROVIDER" flag:"agent-provider" accepts:"openai, dashscope, deepseek, anthropic, llm-service or rules" doc:"provider where a caller names none; unset: the first of these that is configured"`
	AgentModels    string `env:"OPENSKILL_AGENT_MODELS" flag:"agent-models" accepts:"PROVIDER:MODEL with commas between them" doc:"models that callers may name, beside those above; the operator may name any"`
	AgentFast      string `env:"OPENSKILL_AGENT_FAST" flag:"agent-fast" accepts:"PROVIDER or PROVIDER:MODEL" doc:"model of conversations; unset: the provider's own"`
	AgentReasoning string `env:"OPENSKILL_AGENT_REASONING" flag:"agent-reasoning" accepts:"PROVIDER or PROVIDER:MODEL" doc:"model of tasks; unset: the provider's own"`
	AgentPrices    string `env:"OPENSKILL_AGENT_PRICES" flag:"agent-prices" accepts:"entries between semicolons, like gpt-4o=2.5/10" reload:"yes" doc:"what models cost, in dollars for a million tokens of prompt and of reply"`
	LLMTimeoutS    uint64 `env:"OPENSKILL_LLM_TIMEOUT_S" envDefault:"60" flag:"llm-timeout-s" min:"1" max:"3600" doc:"time of one answer of a model, in seconds"`

	AgentIterations    int    `env:"OPENSKILL_AGENT_ITERATIONS" envDefault:"10" flag:"agent-iterations" min:"1" max:"1000" doc:"rounds of one turn of a conversation, each a question to the model"`
	AgentToolCalls     int    `env:"OPENSKILL_AGENT_TOOL_CALLS" envDefault:"32" flag:"agent-tool-calls" min:"1" max:"10000" doc:"calls of tools in one turn, and in one task"`
	AgentTokens        int    `env:"OPENSKILL_AGENT_TOKENS" envDefault:"65536" flag:"agent-tokens" min:"1" max:"100000000" doc:"tokens of one turn, prompts and replies together"`
	AgentReplyTokens   int    `env:"OPENSKILL_AGENT_REPLY_TOKENS" envDefault:"4096" flag:"agent-reply-tokens" min:"1" max:"1000000" doc:"tokens of one answer of a model in a conversation"`
	AgentCents         uint64 `env:"OPENSKILL_AGENT_CENTS" envDefault:"100000000" flag:"agent-cents" min:"1" max:"100000000" doc:"money that models may cost in one turn or task, in US cents; where it is set, a model without a price is refused"`
	AgentFuel          uint64 `env:"OPENSKILL_AGENT_FUEL" envDefault:"1000000000000" flag:"agent-fuel" min:"1" max:"4611686018427387904" doc:"fuel of all calls in one turn or task, in units"`
	AgentTimeoutS      uint64 `env:"OPENSKILL_AGENT_TIMEOUT_S" envDefault:"300" flag:"agent-timeout-s" min:"1" max:"86400" doc:"time of one turn, in seconds"`
	AgentRetries       int    `env:"OPENSKILL_AGENT_RETRIES" envDefault:"3" flag:"agent-retries" min:"1" max:"100" doc:"how often in a row a model may mend a call whose tool or arguments were wrong"`
	AgentHistory       int    `env:"OPENSKILL_AGENT_HISTORY" envDefault:"20" flag:"agent-history" min:"2" max:"10000" doc:"messages of a conversation that the model is shown"`
	AgentKeep          int    `env:"OPENSKILL_AGENT_KEEP" envDefault:"200" flag:"agent-keep" min:"2" max:"100000" doc:"messages of a conversation that are kept"`
	AgentConversations int    `env:"OPENSKILL_AGENT_CONVERSATIONS" envDefault:"1000" flag:"agent-conversations" min:"1" max:"1000000" doc:"conversations of one principal that are kept"`
	AgentDays          uint64 `env:"OPENSKILL_AGENT_DAYS" envDefault:"30" flag:"agent-days" min:"1" max:"36500" doc:"how long conversations and tasks are kept, in days since they last changed"`
	AgentStoredMB      uint64 `env:"OPENSKILL_AGENT_STORED_MB" envDefault:"256" flag:"agent-stored-mb" min:"16" max:"16777216" doc:"conversations of one tenant that are kept, in MiB; more drop its oldest"`
	AgentTurns         int    `env:"OPENSKILL_AGENT_TURNS" envDefault:"1024" flag:"agent-turns" min:"1" max:"100000" doc:"turns and tasks under way at once; more are refused with 429"`
	AgentResultKB      uint64 `env:"OPENSKILL_AGENT_RESULT_KB" envDefault:"16" flag:"agent-result-kb" min:"1" max:"1024" doc:"most that a model reads of the result of one call, in KiB"`

	TaskIterations   int    `env:"OPENSKILL_TASK_ITERATIONS" envDefault:"10" flag:"task-iterations" min:"1" max:"1000" doc:"most rounds of one task (POST /api/agent/execute)"`
	TaskTokens       int    `env:"OPENSKILL_TASK_TOKENS" envDefault:"8192" flag:"task-tokens" min:"1" max:"100000000" doc:"tokens of one task, prompts and replies together"`
	TaskMinTokens    int    `env:"OPENSKILL_TASK_MIN_TOKENS" envDefault:"500" flag:"task-min-tokens" min:"1" max:"1000000" doc:"tokens below which a task asks its model no more"`
	TaskReplyTokens  int    `env:"OPENSKILL_TASK_REPLY_TOKENS" envDefault:"2048" flag:"task-reply-tokens" min:"1" max:"1000000" doc:"tokens of one answer of a model in a task"`
	TaskIterationS   uint64 `env:"OPENSKILL_TASK_ITERATION_S" envDefault:"60" flag:"task-iteration-s" min:"1" max:"86400" doc:"time of one round of a task, in seconds"`
	TaskTimeoutS     uint64 `env:"OPENSKILL_TASK_TIMEOUT_S" envDefault:"300" flag:"task-timeout-s" min:"1" max:"86400" doc:"time of one task, in seconds, where its caller says nothing"`
	TaskMaxTimeoutS  uint64 `env:"OPENSKILL_TASK_MAX_TIMEOUT_S" envDefault:"600" flag:"task-max-timeout-s" min:"1" max:"86400" doc:"most time that a caller may ask for, in seconds"`
	TaskHistory      int    `env:"OPENSKILL_TASK_HISTORY" envDefault:"5" flag:"task-history" min:"1" max:"1000" doc:"rounds of a task that its model is shown"`
	TaskShortHistory int    `env:"OPENSKILL_TASK_SHORT_HISTORY" envDefault:"3" flag:"task-short-history" min:"1" max:"1000" doc:"rounds that it is shown where those do not fit into what is left of its tokens"`
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
	if s.TaskShortHistory > s.TaskHistory {
		s.TaskShortHistory = s.TaskHistory
	}
}
