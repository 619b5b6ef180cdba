package config

import (
	"strconv"
	"strings"
	"sync"
)

// Renamed is a setting that was given by an old name.
type Renamed struct {
	Old   string // its old name in the environment
	Where string // where it was given
	Now   string // what to write instead; "" where the setting is gone
	Why   string // what holds where the setting is gone
}

// oldName is a name that is read for one release.
type oldName struct {
	now   string              // name of the field that has the value; "": the setting is gone
	fixed string              // what holds where it is gone
	value func(string) string // what the old value is now; nil: the same
}

// oldNames are the former names of settings, which this release reads with a warning. The key
// in openskill.yaml and the flag of each are made of its name as those of settings are.
var oldNames = map[string]oldName{
	"OPENSKILL_MAX_TIMEOUT_MS": {now: "OPENSKILL_TIMEOUT_MS.max"},
	"OPENSKILL_MAX_MEMORY_MB":  {now: "OPENSKILL_MEMORY_MB.max"},
	"OPENSKILL_MAX_FUEL":       {now: "OPENSKILL_FUEL.max"},
	"OPENSKILL_MAX_OUTPUT_KB":  {now: "OPENSKILL_OUTPUT_KB.max"},
	"OPENSKILL_MAX_SCRATCH_MB": {now: "OPENSKILL_SCRATCH_MB.max"},

	"OPENSKILL_AUDIT_DAYS":      {now: "OPENSKILL_RETENTION_DAYS.records"},
	"OPENSKILL_AGENT_DAYS":      {now: "OPENSKILL_RETENTION_DAYS.conversations"},
	"OPENSKILL_AUDIT_MB":        {now: "OPENSKILL_STORAGE_MB.records"},
	"OPENSKILL_RECORDINGS_MB":   {now: "OPENSKILL_STORAGE_MB.recordings"},
	"OPENSKILL_AGENT_STORED_MB": {now: "OPENSKILL_STORAGE_MB.conversations"},
	"OPENSKILL_UPLOAD_QUOTA_MB": {now: "OPENSKILL_STORAGE_MB.uploads"},
	"OPENSKILL_UPLOAD_MB":       {now: "OPENSKILL_UPLOADS.mb"},
	"OPENSKILL_UPLOAD_SKILLS":   {now: "OPENSKILL_UPLOADS.skills"},
	"OPENSKILL_UPLOAD_VERSIONS": {now: "OPENSKILL_UPLOADS.versions"},

	"OPENSKILL_RATE_TENANT":           {now: "OPENSKILL_RATE.tenant"},
	"OPENSKILL_RATE_PRINCIPAL":        {now: "OPENSKILL_RATE.principal"},
	"OPENSKILL_RATE_REQUESTS":         {now: "OPENSKILL_RATE.requests"},
	"OPENSKILL_CONCURRENCY_PER_SKILL": {now: "OPENSKILL_CONCURRENCY.skill"},
	"OPENSKILL_CONCURRENCY_TENANT":    {now: "OPENSKILL_CONCURRENCY.tenant", value: zeroIsUnset},
	"OPENSKILL_CONCURRENCY_PRINCIPAL": {now: "OPENSKILL_CONCURRENCY.principal", value: zeroIsUnset},
	"OPENSKILL_DAILY_EXECUTIONS":      {now: "OPENSKILL_DAILY.executions"},
	"OPENSKILL_DAILY_FUEL":            {now: "OPENSKILL_DAILY.fuel"},
	"OPENSKILL_DAILY_MODEL_REQUESTS":  {now: "OPENSKILL_DAILY.model_requests"},
	"OPENSKILL_DAILY_MODEL_TOKENS":    {now: "OPENSKILL_DAILY.model_tokens"},
	"OPENSKILL_DAILY_MODEL_CENTS":     {now: "OPENSKILL_DAILY.model_cents"},

	"OPENSKILL_AGENT_FAST":         {now: "OPENSKILL_AGENT_PROVIDER.fast"},
	"OPENSKILL_AGENT_REASONING":    {now: "OPENSKILL_AGENT_PROVIDER.reasoning"},
	"OPENSKILL_AGENT_ITERATIONS":   {now: "OPENSKILL_AGENT_LIMITS.iterations"},
	"OPENSKILL_TASK_ITERATIONS":    {now: "OPENSKILL_AGENT_LIMITS.iterations"},
	"OPENSKILL_AGENT_TOOL_CALLS":   {now: "OPENSKILL_AGENT_LIMITS.tool_calls"},
	"OPENSKILL_AGENT_TOKENS":       {now: "OPENSKILL_AGENT_LIMITS.tokens"},
	"OPENSKILL_TASK_TOKENS":        {now: "OPENSKILL_AGENT_LIMITS.task_tokens"},
	"OPENSKILL_AGENT_REPLY_TOKENS": {now: "OPENSKILL_AGENT_LIMITS.reply_tokens"},
	"OPENSKILL_AGENT_CENTS":        {now: "OPENSKILL_AGENT_LIMITS.cents"},
	"OPENSKILL_AGENT_FUEL":         {now: "OPENSKILL_AGENT_LIMITS.fuel"},
	"OPENSKILL_AGENT_TIMEOUT_S":    {now: "OPENSKILL_AGENT_LIMITS.timeout_s"},
	"OPENSKILL_TASK_TIMEOUT_S":     {now: "OPENSKILL_AGENT_LIMITS.timeout_s"},
	"OPENSKILL_TASK_MAX_TIMEOUT_S": {now: "OPENSKILL_AGENT_LIMITS.max_timeout_s"},
	"OPENSKILL_LLM_TIMEOUT_S":      {now: "OPENSKILL_AGENT_LIMITS.model_timeout_s"},
	"OPENSKILL_TASK_ITERATION_S":   {now: "OPENSKILL_AGENT_LIMITS.round_timeout_s"},
	"OPENSKILL_AGENT_HISTORY":      {now: "OPENSKILL_AGENT_LIMITS.history"},
	"OPENSKILL_AGENT_TURNS":        {now: "OPENSKILL_AGENT_LIMITS.concurrent"},
	"OPENSKILL_TRACES":             {now: "OTEL_TRACES_EXPORTER", value: offIsNone},
	"OPENSKILL_TRACES_PER_MILLION": {now: "OTEL_TRACES_SAMPLER_ARG", value: perMillion},

	"OPENSKILL_JWT_SKEW_S":          {fixed: "clocks may differ by 30 seconds"},
	"OPENSKILL_AUDIT_PAYLOAD_KB":    {fixed: "a record stores up to 16 KiB of an input, and of an output"},
	"OPENSKILL_RECORD_MB":           {fixed: "a recording has up to 16 MiB"},
	"OPENSKILL_WORKERS_SPARE":       {fixed: "one worker process is spare"},
	"OPENSKILL_WORKER_CALLS":        {fixed: "a worker process is replaced after 10000 calls"},
	"OPENSKILL_UPLOAD_GRACE_S":      {fixed: "the files of a deleted version stay 600 seconds"},
	"OPENSKILL_QUARANTINE_CRASHES":  {fixed: "2 crashes of a worker within 10 minutes quarantine a version"},
	"OPENSKILL_QUARANTINE_LIMITS":   {fixed: "20 consecutive runs that hit a limit quarantine a version"},
	"OPENSKILL_AGENT_RETRIES":       {fixed: "a model may correct a call 3 times in a row"},
	"OPENSKILL_AGENT_KEEP":          {fixed: "a conversation stores 200 messages"},
	"OPENSKILL_AGENT_CONVERSATIONS": {fixed: "a principal has up to 1000 conversations"},
	"OPENSKILL_AGENT_RESULT_KB":     {fixed: "a model gets up to 16 KiB of a result"},
	"OPENSKILL_TASK_MIN_TOKENS":     {fixed: "a task with fewer than 500 tokens left asks its model no more"},
	"OPENSKILL_TASK_REPLY_TOKENS":   {fixed: "a reply in a task has up to 2048 tokens"},
	"OPENSKILL_TASK_HISTORY":        {fixed: "5 rounds of a task are sent to the model"},
	"OPENSKILL_TASK_SHORT_HISTORY":  {fixed: "3 rounds are sent when tokens are short"},
	"OPENSKILL_TRACES_MB":           {fixed: "files of traces take up to 64 MiB"},
}

func zeroIsUnset(text string) string {
	if text == "0" {
		return ""
	}
	return text
}

func offIsNone(text string) string {
	if text == "off" {
		return string(TracesNone)
	}
	return text
}

func perMillion(text string) string {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64)
}

// target is what a name in the environment sets.
type target struct {
	rank    int // the higher of two wins
	setting *Setting
	field   field // of a shorthand
}

// accepts says what a value must be.
func (t target) accepts() string {
	if t.setting != nil {
		return t.setting.Accepts
	}
	return "a single value"
}

// targets has all names that are read.
var targets = sync.OnceValue(func() map[string]target {
	out := map[string]target{}
	for name := range oldNames {
		out[name] = target{}
	}
	rows := table()
	for i := range rows {
		out[rows[i].Env] = target{rank: 1, setting: &rows[i]}
		for _, f := range rows[i].parts {
			if f.short != "" {
				out[f.short] = target{rank: 2, field: f}
			}
		}
	}
	return out
})

// byKey and byFlag give the name in the environment of a key in openskill.yaml, and of a flag.
var byKey, byFlag = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for name := range targets() {
		out[keyOf(name)] = name
	}
	return out
}), sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for name, to := range targets() {
		switch {
		case to.setting == nil && !to.field.secret:
			out[strings.ReplaceAll(keyOf(name), "_", "-")] = name
		case to.setting != nil && to.setting.Flag != "":
			out[to.setting.Flag] = name
		}
	}
	return out
})

func keyOf(env string) string { return strings.ToLower(strings.TrimPrefix(env, prefix)) }

// OldFlags lists the flags that are read and not shown: those of old names and of shorthands.
func OldFlags() []string {
	var out []string
	for flag, name := range byFlag() {
		if targets()[name].setting == nil {
			out = append(out, flag)
		}
	}
	return out
}
