package skill

import "maps"

// A Code names one kind of failure. Codes are a contract with callers: the list
// only ever grows, and a code never changes its meaning or its status.
type Code string

// The codes, with the HTTP status that each one is answered with.
const (
	// The module was refused before it ran.
	InvalidModule    Code = "INVALID_MODULE"     // 422: not a WebAssembly module, or not a valid one
	ModuleTooComplex Code = "MODULE_TOO_COMPLEX" // 422: valid so far, but over one of the published caps
	CompileTimeout   Code = "COMPILE_TIMEOUT"    // 422: compiling took longer or more memory than allowed
	ImportDenied     Code = "IMPORT_DENIED"      // 422: imports something that is not in the published table
	FeatureDisabled  Code = "FEATURE_DISABLED"   // 422: uses a proposal that is switched off

	// The run was ended by one of its limits.
	MemoryLimit   Code = "MEMORY_LIMIT"   // 422
	TableLimit    Code = "TABLE_LIMIT"    // 422
	StackLimit    Code = "STACK_LIMIT"    // 422
	FuelExhausted Code = "FUEL_EXHAUSTED" // 422
	Timeout       Code = "TIMEOUT"        // 408
	OutputLimit   Code = "OUTPUT_LIMIT"   // 422

	// The run reached for something that it was not granted.
	ForbiddenPath Code = "FORBIDDEN_PATH" // 403
	NetworkDenied Code = "NETWORK_DENIED" // 403

	// The run ended by itself, but not well.
	Trap          Code = "TRAP"           // 502
	GuestExit     Code = "GUEST_EXIT"     // 502: a non-zero exit code and no result
	InvalidOutput Code = "INVALID_OUTPUT" // 502: standard output is not the JSON that the contract asks for
	WorkerCrashed Code = "WORKER_CRASHED" // 502

	// The request or the skill's folder is at fault.
	ArchiveRejected     Code = "ARCHIVE_REJECTED"     // 422
	InvalidManifest     Code = "INVALID_MANIFEST"     // 422
	InvalidArgument     Code = "INVALID_ARGUMENT"     // 400
	Unauthorized        Code = "UNAUTHORIZED"         // 401
	Forbidden           Code = "FORBIDDEN"            // 403
	NotFound            Code = "NOT_FOUND"            // 404
	Conflict            Code = "CONFLICT"             // 409
	PayloadTooLarge     Code = "PAYLOAD_TOO_LARGE"    // 413
	UnsupportedEncoding Code = "UNSUPPORTED_ENCODING" // 415
	RateLimited         Code = "RATE_LIMITED"         // 429, with Retry-After

	// What a skill that comes from elsewhere is held to: who signed it, and what was here before.
	SignatureMissing Code = "SIGNATURE_MISSING" // 403: nobody signed it, and unsigned skills are not accepted
	SignatureInvalid Code = "SIGNATURE_INVALID" // 403: changed after it was signed, or signed by a key that is not accepted
	PublisherDenied  Code = "PUBLISHER_DENIED"  // 403: signed by a publisher who may not publish this skill, or not from there
	DowngradeRefused Code = "DOWNGRADE_REFUSED" // 409: an older version than one that was here

	// The host is at fault, or the caller left.
	AuditUnavailable    Code = "AUDIT_UNAVAILABLE"     // 503
	Cancelled           Code = "CANCELLED"             // 499: the client left; nobody reads the answer
	Internal            Code = "INTERNAL"              // 500
	ToolInvocationError Code = "TOOL_INVOCATION_ERROR" // 502

	// What the agent-service documents call failures below /api/agent.
	SharedUnauthorized   Code = "SHARED_UNAUTHORIZED"    // 401
	AgentValidationError Code = "AGENT_VALIDATION_ERROR" // 422: a parameter that cannot be read

	// What they call failures of a task that an agent works on. Those that the agent goes
	// on after, or that end a task with what it has so far, are no status of an answer.
	AgentInvalidTask      Code = "AGENT_INVALID_TASK"      // 400: a task that is empty or too long
	AgentSkillNotFound    Code = "AGENT_SKILL_NOT_FOUND"   // 404: a task names a skill that there is not
	AgentSkillError       Code = "AGENT_SKILL_ERROR"       // 502: a skill failed; the model is told
	AgentLLMUnavailable   Code = "AGENT_LLM_UNAVAILABLE"   // 503: the model cannot be had, or refuses
	AgentLLMParseError    Code = "AGENT_LLM_PARSE_ERROR"   // 502: the model's answer is not what was asked for
	AgentTokenExhausted   Code = "AGENT_TOKEN_EXHAUSTED"   //nolint:gosec // 422: the budget of tokens is used up; nothing secret
	AgentExecutionTimeout Code = "AGENT_EXECUTION_TIMEOUT" // 408: the task took longer than it may
	AgentMaxIterations    Code = "AGENT_MAX_ITERATIONS"    // 422: the model has not finished in as many rounds as it has
	AgentLoopError        Code = "AGENT_LOOP_ERROR"        // 500: the agent itself is at fault
)

// statuses is the one table from code to HTTP status.
var statuses = map[Code]int{
	InvalidModule: 422, ModuleTooComplex: 422, CompileTimeout: 422, ImportDenied: 422, FeatureDisabled: 422,
	MemoryLimit: 422, TableLimit: 422, StackLimit: 422, FuelExhausted: 422, Timeout: 408, OutputLimit: 422,
	ForbiddenPath: 403, NetworkDenied: 403,
	Trap: 502, GuestExit: 502, InvalidOutput: 502, WorkerCrashed: 502,
	ArchiveRejected: 422, InvalidManifest: 422, InvalidArgument: 400, Unauthorized: 401, Forbidden: 403,
	NotFound: 404, Conflict: 409, PayloadTooLarge: 413, UnsupportedEncoding: 415, RateLimited: 429,
	SignatureMissing: 403, SignatureInvalid: 403, PublisherDenied: 403, DowngradeRefused: 409,
	AuditUnavailable: 503, Cancelled: 499, Internal: 500, ToolInvocationError: 502,
	SharedUnauthorized: 401, AgentValidationError: 422,
	AgentInvalidTask: 400, AgentSkillNotFound: 404, AgentSkillError: 502, AgentLLMUnavailable: 503, AgentLLMParseError: 502,
	AgentTokenExhausted: 422, AgentExecutionTimeout: 408, AgentMaxIterations: 422, AgentLoopError: 500,
}

// Known reports whether c is one of the published codes. A guest may report an
// error of its own; a code that is not known becomes INTERNAL at the door.
func (c Code) Known() bool { _, ok := statuses[c]; return ok }

// Status is the HTTP status that c is answered with; 500 for an unknown code.
func (c Code) Status() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return 500
}

// Codes returns every published code with its status, for documents and tests.
func Codes() map[Code]int { return maps.Clone(statuses) }
