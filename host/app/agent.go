package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"openskill/host/agent/budget"
	"openskill/host/agent/chat"
	"openskill/host/agent/llm"
	"openskill/host/agent/react"
	"openskill/host/agent/toolbox"
	"openskill/host/app/config"
)

// maxCost bounds a turn or a task where the operator has set no limit.
const maxCost = 1_000_000 * llm.Dollar

// agents are what works on behalf of callers with models.
type agents struct {
	models *llm.Models
	chat   *chat.Chat
	react  *react.Agent
}

// openAgent makes the agent of the settings. It asks nobody: whether a provider can be
// reached is found out by who needs it.
func (h *Host) openAgent() error {
	s := h.settings
	models, err := h.openModels()
	if err != nil {
		return err
	}
	parallel := max(s.Concurrency/2, 1) // the rest is for callers without a model
	box, err := toolbox.New(toolbox.Options{
		Door: h.door, Catalogue: h.Catalogue(), AgentSkills: h.agents, Parallel: parallel, Alone: h.alone,
		Log: h.log,
	})
	if err != nil {
		return err
	}
	cost := llm.Money(s.AgentCents) * (llm.Dollar / 100) // at most a million dollars by its range
	if cost == 0 {
		cost = maxCost
	}
	h.agent.models = models
	h.agent.chat, err = chat.New(chat.Options{
		Models: models, Tools: box.For, Store: h.kept.db.Conversations(), Approvals: h.approvals, Quotas: h.kept.quotas,
		Limits: budget.Limits{
			Iterations: s.AgentIterations, ToolCalls: s.AgentToolCalls, Tokens: s.AgentTokens, Cost: cost, Fuel: s.AgentFuel,
			Time: config.Seconds(s.AgentTimeoutS),
		},
		ReplyTokens: s.AgentReplyTokens, History: s.AgentHistory, Days: int(s.AgentDays), Concurrent: s.AgentTurns, Alone: h.alone, Log: h.log, // at most a century
		Now: h.kept.log.DatabaseTime,
	})
	if err != nil {
		return err
	}
	kinds := map[string]react.Kind{}
	for name, k := range s.KindsOfTasks() {
		kinds[name] = react.Kind(k)
	}
	h.agent.react, err = react.New(react.Options{
		Models: models, Tools: box.For, Sessions: h.kept.db.Sessions(), Quotas: h.kept.quotas,
		MaxIterations: s.AgentIterations, MaxTokens: s.TaskTokens, MinTokens: s.TaskMinTokens(),
		IterationTimeout: config.Seconds(s.TaskIterationS), Timeout: config.Seconds(s.AgentTimeoutS), MaxTimeout: config.Seconds(s.TaskMaxTimeoutS), Kinds: kinds, Cost: cost, Fuel: s.AgentFuel, MaxCalls: s.AgentToolCalls,
		Concurrent: s.AgentTurns, Alone: h.alone, Keep: time.Duration(s.AgentDays) * 24 * time.Hour, Log: h.log, // at most a century
		Now: h.kept.log.DatabaseTime,
	})
	return err
}

// Providers lists the providers of models that are configured, the default first.
func Providers(s *config.Settings) []string {
	list := s.Configured()
	if i := slices.Index(list, s.AgentProvider); i > 0 {
		list = append([]string{s.AgentProvider}, slices.Delete(list, i, i+1)...)
	}
	return list
}

// openModels makes the providers that are configured.
func (h *Host) openModels() (*llm.Models, error) {
	s := h.settings
	var list []llm.Backend
	for _, name := range Providers(s) {
		b := llm.Backend{Name: name, Models: s.Offered(name), Timeout: config.Seconds(s.LLMTimeoutS), Counter: llm.CounterFor}
		var err error
		switch name {
		case config.OpenAI:
			b.Model = s.OpenAIModel
			b.Provider, err = llm.OpenAI(llm.Vendor{Name: name, BaseURL: s.OpenAIBase, Key: s.OpenAIKey})
		case config.DashScope:
			b.Model = s.DashScopeModel
			b.Provider, err = llm.OpenAI(llm.Vendor{Name: name, BaseURL: s.DashScopeBase, Key: s.DashScopeKey})
		case config.DeepSeek:
			b.Model = s.DeepSeekModel
			b.Provider, err = llm.OpenAI(llm.Vendor{Name: name, BaseURL: s.DeepSeekBase, Key: s.DeepSeekKey})
		case config.Anthropic:
			b.Model = s.AnthropicModel
			b.Provider, err = llm.Anthropic(llm.Vendor{Name: name, BaseURL: s.AnthropicBase, Key: s.AnthropicKey})
		case config.LLMService:
			b.Model = "by-slot"
			b.Provider, err = llm.Service(llm.Vendor{BaseURL: s.LLMServiceURL, Key: s.LLMServiceKey})
		default:
			b.Model, b.Free, b.Provider = "rules", true, llm.Rules(h.log)
			b.Counter = func(string) llm.Counter { return llm.Nothing }
		}
		if err != nil {
			return nil, fmt.Errorf("the model provider %s: %w", name, err)
		}
		b.Provider = h.tracedModel(name, h.metrics.Provider(name, b.Provider))
		list = append(list, b)
	}
	slots := map[llm.Slot]string{}
	if s.AgentFast != "" {
		slots[llm.Fast] = s.AgentFast
	}
	if s.AgentReasoning != "" {
		slots[llm.Reasoning] = s.AgentReasoning
	}
	return llm.NewModels(llm.Options{Backends: list, Slots: slots, Prices: s.Prices(), Priced: s.MoneyBounded(), Spending: h.kept.quotas, Log: h.log})
}

// Chat is where callers talk to models that call their skills.
func (h *Host) Chat() *chat.Chat { return h.agent.chat }

// Models are the models that the agent asks.
func (h *Host) Models() *llm.Models { return h.agent.models }

// OnlyRules reports whether rules answer where a caller names no provider, because no
// model is configured or the settings say so.
func (h *Host) OnlyRules() bool { return h.agent.models.Providers()[0] == config.Rules }

// tendAgent removes conversations and tasks that are too old, until ctx ends.
func (h *Host) tendAgent(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { h.agent.chat.Tend(ctx) })
	all.Go(func() { h.agent.react.Tend(ctx) })
	all.Wait()
}
