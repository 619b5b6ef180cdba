package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/agent/llm"
	"openskill/internal/musttest"
)

// TestProviders: those that are configured, in the order in which the default is looked
// for; the rules always are.
func TestProviders(t *testing.T) {
	for environ, want := range map[string]string{
		"":                                      "rules",
		"OPENAI_API_KEY=k":                      "openai rules",
		"OPENAI_API_BASE=http://127.0.0.1:9/v1": "openai rules", // a server that asks for no key
		"ANTHROPIC_API_KEY=k DASHSCOPE_API_KEY=k":                                     "dashscope anthropic rules",
		"DEEPSEEK_API_KEY=k OPENAI_API_KEY=k":                                         "openai deepseek rules",
		"OPENSKILL_LLM_SERVICE_URL=http://127.0.0.1:86":                               "llm-service rules",
		"DASHSCOPE_API_BASE=http://127.0.0.1:9 OPENAI_MODEL=gpt-4o ANTHROPIC_MODEL=x": "rules",
	} {
		s := musttest.Get(Load(Sources{Dir: t.TempDir(), Environ: strings.Fields(environ)}))(t)
		if got := strings.Join(s.Configured(), " "); got != want {
			t.Errorf("with %q there are %q, want %q", environ, got, want)
		}
		if len(s.Unknown()) > 0 {
			t.Errorf("unknown are %q", s.Unknown())
		}
	}
}

func TestKindsOfTasks(t *testing.T) {
	s := musttest.Get(Load(Sources{Dir: t.TempDir(), Flags: map[string]string{"task-kinds": " summary = iterations:2, tokens:400 ;\nresearch-2=timeout_s:600;", "agent-limits": "task_tokens:400"}}))(t)
	want := map[string]TaskKind{"summary": {Iterations: 2, Tokens: 400}, "research-2": {Timeout: 10 * time.Minute}}
	if got := s.KindsOfTasks(); !maps.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestAgentSettings(t *testing.T) {
	s, err := Load(Sources{Dir: t.TempDir(), Environ: []string{
		"OPENAI_API_KEY=k", "OPENSKILL_AGENT_MODELS=openai:gpt-4o, openai:o3,rules:x", "OPENSKILL_AGENT_PRICES=gpt-4o=2.5/10;openai:o3 = 1/2",
		"OPENSKILL_AGENT_LIMITS=cents:50,task_tokens:300",
	}})
	musttest.Do(t, err)
	if got := s.Offered(OpenAI); !slices.Equal(got, []string{"gpt-4o", "o3"}) {
		t.Errorf("offered are %q", got)
	}
	if p, ok := s.Prices().Of("openai", "gpt-4o"); !ok || p.Of(llm.Usage{Prompt: 1e6, Completion: 1e6}) != 12*llm.Dollar+llm.Dollar/2 {
		t.Errorf("the price is %+v", p)
	}
	if !s.MoneyBounded() || s.TaskMinTokens() != 300 {
		t.Errorf("bounded: %v, least tokens %d", s.MoneyBounded(), s.TaskMinTokens())
	}
	for environ, want := range map[string]string{
		"OPENAI_API_BASE=ftp://x":                                 "OPENAI_API_BASE",
		"OPENAI_API_BASE=http://user:hush@x/v1":                   "without user",
		"OPENSKILL_LLM_SERVICE_URL=nowhere":                       "OPENSKILL_LLM_SERVICE_URL",
		"OPENSKILL_AGENT_PROVIDER=openai":                         "not configured (configured: rules)",
		"OPENSKILL_AGENT_PROVIDER=reasoning:none:x":               "OPENSKILL_AGENT_PROVIDER reasoning",
		"OPENSKILL_AGENT_PRICES=gpt-4o=cheap":                     "OPENSKILL_AGENT_PRICES",
		"OPENSKILL_AGENT_MODELS=gpt-4o":                           "OPENSKILL_AGENT_MODELS",
		"OPENSKILL_AGENT_LIMITS=tokens:0":                         "OPENSKILL_AGENT_LIMITS tokens",
		"OPENSKILL_AGENT_LIMITS=timeout_s:900":                    "OPENSKILL_AGENT_LIMITS timeout_s (from the environment) is 900: more than its maximum",
		"OPENAI_API_KEY=hush OPENSKILL_AGENT_PROVIDER=fast:nope:": "OPENSKILL_AGENT_PROVIDER fast",
		"OPENSKILL_TASK_KINDS=short":                              `"short"`,
		"OPENSKILL_TASK_KINDS==tokens:600":                        "OPENSKILL_TASK_KINDS",
		"OPENSKILL_TASK_KINDS=a/b=tokens:600":                     `"a/b=tokens:600"`,
		"OPENSKILL_TASK_KINDS=a=tokens:600;a=tokens:700":          `"a" twice`,
		"OPENSKILL_TASK_KINDS=a=tokens:600,tokens:700":            "tokens twice",
		"OPENSKILL_TASK_KINDS=a=":                                 "OPENSKILL_TASK_KINDS",
		"OPENSKILL_TASK_KINDS=a=money:1":                          `"money:1"`,
		"OPENSKILL_PROVIDERS=openai.keys:hush":                    "OPENSKILL_PROVIDERS",
		"OPENSKILL_TASK_KINDS=a=tokens:499":                       "500 to 8192",
		"OPENSKILL_TASK_KINDS=a=tokens:8193":                      "500 to 8192",
		"OPENSKILL_TASK_KINDS=a=iterations:0":                     "1 to 10",
		"OPENSKILL_TASK_KINDS=a=iterations:11":                    "1 to 10",
		"OPENSKILL_TASK_KINDS=a=timeout_s:-1":                     "1 to 600",
		"OPENSKILL_TASK_KINDS=a=timeout_s:601":                    "1 to 600",
		"OPENSKILL_TASK_KINDS=a=timeout_s:1e2":                    "1 to 600",
		"OPENSKILL_TASK_KINDS=a=iterations:99999999999999999999":  "1 to 10",
	} {
		_, err := Load(Sources{Dir: t.TempDir(), Environ: strings.Fields(environ)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("with %q the error is %v, want %q in it", environ, err, want)
		}
	}
}
