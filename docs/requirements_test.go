package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`Test[A-Za-z0-9]+`")
	tableRow  = regexp.MustCompile(`(?m)^\| .* \|$`)
)

// TestRequirements: requirements.md has a row for each requirement, and every row names a
// test. TestNamedTests looks for the tests.
func TestRequirements(t *testing.T) {
	text := page(t, "requirements.md")
	for n := range 16 {
		if row := fmt.Sprintf("\n| REQ-%03d | ", n+1); strings.Count(text, row) != 1 {
			t.Errorf("there must be one row REQ-%03d", n+1)
		}
	}
	rows := 0
	for _, row := range tableRow.FindAllString(text, -1) {
		if strings.HasPrefix(row, "| | what") || strings.HasPrefix(row, "| there |") {
			continue
		}
		rows++
		columns := strings.Split(strings.Trim(row, "|"), " | ")
		last := strings.TrimSpace(columns[len(columns)-1])
		if !strings.HasSuffix(last, "comes later") && !namedTest.MatchString(last) {
			t.Errorf("this row names no test: %s", row)
		}
	}
	if rows < 60 {
		t.Errorf("%d rows", rows)
	}
}

// named are what the five documents name that the project grew from: settings, keys, fields,
// routes, codes, skills and types.
var named = map[string]string{
	"skill-host": `POST /skills/{id}:invoke|X-Trace-Id|NormalizedSkillResult|success|skill_id|trace_id|data|error|code|message|details|meta|latency_ms|version|truncated|
OPENSKILL_HTTP_BASE_URL|OPENSKILL_ALLOWED_ROOT|OPENSKILL_CLI_DIR|OPENSKILL_TIMEOUT_MS|OPENSKILL_DEBUG|id|type|runtime|entry|timeout_ms|allowed_root|
skills/{skill_id}.yaml|{OPENSKILL_CLI_DIR}/{skill_id}.py|SkillRunner|RunnerFactory|cli:python|cli:exec|echo|text|echoed|file_search|query|root_dir|glob|limit|matches|
path|line_no|snippet|calculator|numbers|ops|compare|results|comparison|log_transform|input_path|format|output|rules|timestamp_regex|level_map|records|output_path|stats|
INVALID_ARGUMENT|NOT_FOUND|TIMEOUT|FORBIDDEN_PATH|INTERNAL|TOOL_INVOCATION_ERROR|runner_type|error.code|error.message|selected_skill_id|routing_reason|
max_validation_retries|conversation_id|max_tokens|max_tool_calls|has_llm_config|POST /agent/chat|SKILL_INPUT_SCHEMAS|ToolCallValidator|docs`,
	"capabilities-as-tools": `capability_registry.json|call_capability()|Capability generation|ToolSchema|ToolParameter|name|type|description|required|default|enum|capability_id|
entry_function|code_path|ToolManager|load_tools|get_tool|list_tools|get_tools_for_llm|execute_tool|ParameterExtractor|extract_from_code|extract_from_docstring|AgentLoop|
conversation_history|chat_with_tools|continue_with_results|CapabilityRuntime|capability_to_tool_schema|tool_schema|parameters|returns|properties|tool_choice|AIAdapter`,
	"agent-service": `skill_definitions|execution_logs|name|description|input_schema|output_schema|cost_metadata|is_enabled|created_at|principal_type|human|agent|status|
GET /health|GET /api/agent/skills|POST /api/agent/execute|GET /api/agent/executions/{id}|task|context|options|max_iterations|timeout_seconds|session_id|iterations|
total_token_usage|total_duration_ms|result|skill_calls|skill|iteration|input|duration_ms|summary|findings|partial|request_id|timestamp|completed|terminated|timeout|failed|
AGENT_INVALID_TASK|SHARED_UNAUTHORIZED|AGENT_SKILL_NOT_FOUND|AGENT_EXECUTION_TIMEOUT|AGENT_VALIDATION_ERROR|AGENT_LOOP_ERROR|AGENT_LLM_UNAVAILABLE|AGENT_SKILL_ERROR|
AGENT_LLM_PARSE_ERROR|AGENT_TOKEN_EXHAUSTED|AGENT_MAX_ITERATIONS|skill_call|finish|POST /api/llm/chat|slot|messages|temperature|response_format|X-API-Key|fast|reasoning|
configs/skills.yaml|skill_config_path|SkillRegistry|SkillExecutor|SkillResult|token_usage|estimated_tokens|estimated_duration_ms|rate_limit_per_minute|TokenCounter|
MAX_TOKENS_PER_SESSION|MIN_TOKEN_THRESHOLD|ITERATION_TIMEOUT_SECONDS|idx_execution_logs_principal|idx_execution_logs_session|idx_execution_logs_status|idx_execution_logs_skill`,
	"agent-skills-provider": `AgentSkill|AgentSkillFrontmatter|AgentSkillResource|AgentSkillScript|AgentFileSkill|AgentInlineSkill|AgentClassSkill|AgentSkillsSource|
AgentInMemorySkillsSource|AgentFileSkillsSource|DeduplicatingAgentSkillsSource|FilteringAgentSkillsSource|AggregatingAgentSkillsSource|AgentSkillsProvider|
AgentSkillsProviderBuilder|AgentSkillsProviderOptions|AgentFileSkillsSourceOptions|ScriptApproval|SkillsInstructionPrompt|DisableCaching|load_skill|read_skill_resource|
run_skill_script|UseFileSkill|UseSkill|UseSource|UsePromptTemplate|UseScriptApproval|UseFileScriptRunner|UseLoggerFactory|UseFilter|UseOptions|Build|unit-converter|translator`,
	"agent-skills-requirements": `load_skill|run_skill_script|skill_name|script_file|args|SKILL.md|AgentSkills:DataDir|IBotSharpPlugin`,
}

// TestEveryNameOfTheSeedsHasARow: no name of these documents is without a row.
func TestEveryNameOfTheSeedsHasARow(t *testing.T) {
	rows := strings.Join(tableRow.FindAllString(page(t, "requirements.md"), -1), "\n")
	for seed, names := range named {
		for _, name := range strings.Split(strings.ReplaceAll(names, "\n", ""), "|") {
			if !regexp.MustCompile(`(^|[^\pL\pN_])` + regexp.QuoteMeta(name) + `($|[^\pL\pN_])`).MatchString(rows) {
				t.Errorf("%s of %s has no row in requirements.md", name, seed)
			}
		}
	}
}
