package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"openskill/host/agent/llm"
	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

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
		{OpenAI, s.OpenAIKey != "" || s.Origin("OPENSKILL_PROVIDERS.openai.base") != FromDefault},
		{DashScope, s.DashScopeKey != ""},
		{DeepSeek, s.DeepSeekKey != ""},
		{Anthropic, s.AnthropicKey != "" || s.Origin("OPENSKILL_PROVIDERS.anthropic.base") != FromDefault},
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
	return s.AgentCents > 0 || s.Origin("OPENSKILL_DAILY.model_cents") != FromDefault
}

// TaskMinTokens is how many tokens a task must have left to ask its model again.
func (s *Settings) TaskMinTokens() int { return min(500, s.TaskTokens) }

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
				to, most = &k.Iterations, s.AgentIterations
			case "tokens":
				to, least, most = &k.Tokens, s.TaskMinTokens(), s.TaskTokens
			case "timeout_s":
			default:
				return nil, fmt.Errorf("has %s, which is not iterations, tokens or timeout_s", safeyaml.Quote(limit))
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

// configured refuses a provider, alone or with a model, that the settings do not have.
func (s *Settings) configured(name string) error {
	provider, _, _ := strings.Cut(name, ":")
	if list := s.Configured(); name != "" && !slices.Contains(list, provider) {
		return fmt.Errorf("names a provider that is not configured (configured: %s)", strings.Join(list, ", "))
	}
	return nil
}

// models refuses entries of OPENSKILL_AGENT_MODELS that no provider has.
func (s *Settings) models() error {
	for entry := range strings.SplitSeq(s.AgentModels, ",") {
		entry = strings.TrimSpace(entry)
		if _, model, _ := strings.Cut(entry, ":"); entry != "" && (model == "" || s.configured(entry) != nil || skill.CleanText(model, 200) != model) {
			return errors.New("has an entry that is no model of a provider that is configured")
		}
	}
	return nil
}
