package app

import (
	"context"
	"fmt"
	"slices"

	"openskill/host/agent/conversations"

	"openskill/host/agent"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/app/config"
	"openskill/host/dispatch"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// maxCost bounds a turn or a task where the operator has set no limit.
const maxCost = 1_000_000 * llm.Dollar

// openAgent makes the agent of the settings. It asks nobody: whether a provider can be
// reached is found out by who needs it.
func (h *Host) openAgent() error {
	s := h.settings
	var err error
	if h.models, err = h.openModels(); err != nil {
		return err
	}
	parallel := max(s.Concurrency/2, 1) // the rest is for callers without a model
	box, err := tools.New(tools.Options{
		Door: h.door, Catalogue: h.Catalogue(), AgentSkills: hostTools{h.agents, h}, Search: h.Search, Parallel: parallel, Alone: h.alone,
		Log: h.log,
	})
	if err != nil {
		return err
	}
	cost := llm.Money(s.AgentCents) * (llm.Dollar / 100) // at most a million dollars by its range
	if cost == 0 {
		cost = maxCost
	}
	kinds := map[string]agent.TaskKind{}
	for name, k := range s.KindsOfTasks() {
		kinds[name] = agent.TaskKind(k)
	}
	h.agent, err = agent.New(agent.Options{
		Models: h.models, Tools: box.For, Store: conversations.NewStore(h.kept.db), Sessions: conversations.NewStore(h.kept.db), Approvals: h.approvals, Workspaces: conversationFiles{h.door, h.kept.spaces}, Quotas: h.kept.quotas,
		Concurrent: s.AgentTurns, Alone: h.alone, ToolCalls: s.AgentToolCalls, Cost: cost, Fuel: s.AgentFuel, Days: int(s.AgentDays), // at most a century
		Chat: agent.ChatOptions{
			Iterations: s.AgentIterations, Tokens: s.AgentTokens, Time: config.Seconds(s.AgentTimeoutS), ReplyTokens: s.AgentReplyTokens,
			History: s.AgentHistory, Keep: 200, Retries: 3, Conversations: 1000,
		},
		Task: agent.TaskLimits{
			Iterations: s.AgentIterations, Tokens: s.TaskTokens, MinTokens: s.TaskMinTokens(), ReplyTokens: 2048,
			IterationTimeout: config.Seconds(s.TaskIterationS), Timeout: min(config.Seconds(s.AgentTimeoutS), config.Seconds(s.TaskMaxTimeoutS)), MaxTimeout: config.Seconds(s.TaskMaxTimeoutS),
			History: 5, ShortHistory: 3, Kinds: kinds,
		},
		Ended: h.metrics.Turn, Log: h.log, Now: h.kept.log.DatabaseTime,
	})
	return err
}

// conversationFiles are the workspaces of conversations.
type conversationFiles struct {
	*dispatch.Dispatcher
	spaces *records.Workspaces
}

// Get implements [agent.Workspaces].
func (c conversationFiles) Get(ctx context.Context, p skill.Principal, id string) (*skill.Workspace, error) {
	return c.spaces.Get(ctx, p, id)
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

// Agent has models work for callers.
func (h *Host) Agent() *agent.Agent { return h.agent }

// Models are the models that the agent asks.
func (h *Host) Models() *llm.Models { return h.models }

// OnlyRules reports whether rules answer where a caller names no provider, because no
// model is configured or the settings say so.
func (h *Host) OnlyRules() bool { return h.models.Providers()[0] == config.Rules }
