// Package llmtest is a model that follows a script: what it answers is written down
// beforehand, so that tests, demonstrations and hosts without a network have a model
// that does the same each time. It obeys, too: a rule can take what a tool's result says
// and do that, which is how the host is tried with a model that hostile text has won.
//
// A [Model] is an [openskill/host/agent/llm.Provider]. A [Server] speaks for it as OpenAI's
// Chat Completions, Anthropic's Messages and the llm-service of the agent-service
// documents do, streamed and not, and refuses the requests that these refuse: what it
// accepts was tried with the vendors' own clients.
//
// A script is a list of rules. Each request is answered by the first one that fits, and
// what fits is seen from the request alone: the model remembers nothing of a
// conversation, so a thousand of them may use it at once. The last message decides. A
// rule that only names a text of the user fits where the user has spoken last; what is to
// come after a tool names the tool, its result, or how often the model has answered since
// the user spoke.
//
//	{"rules": [
//	  {"when": {"user": "(?i)weather in (\\w+)"}, "calls": [{"name": "weather", "arguments": {"city": "$1"}}]},
//	  {"when": {"after_tool": "weather", "result": "degrees\": *(\\d+)"}, "say": "It has $1 degrees."},
//	  {"when": {"user": "busy"}, "status": 503, "times": 1},
//	  {"say": "I only know the weather."}
//	]}
package llmtest
