package mcp

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/sdk/skill"
)

// methods are those that are served: requests, true where they need params, and notifications.
var (
	methods = map[string]bool{
		"initialize": true, "ping": false, "server/discover": false, "completion/complete": true, "logging/setLevel": true,
		"tools/list": false, "tools/call": true, "prompts/list": false, "prompts/get": true,
		"resources/list": false, "resources/templates/list": false, "resources/read": true,
		"resources/subscribe": true, "resources/unsubscribe": true, "subscriptions/listen": true,
		"skills/list": false, "skills/get": true, "resources/directory/read": true,
		"tasks/get": true, "tasks/update": true, "tasks/cancel": true,
	}
	notifications = map[string]bool{
		"notifications/cancelled": true, "notifications/initialized": true, "notifications/progress": true, "notifications/roots/list_changed": true,
	}
)

// paramsOf gives what the params of a method are read into; nil for methods that are
// not looked at before the SDK does.
func paramsOf(method string) any {
	switch method {
	case "initialize":
		return &mcp.InitializeParams{}
	case "tools/call":
		return &mcp.CallToolParamsRaw{}
	case "tools/list":
		return &mcp.ListToolsParams{}
	case "resources/list":
		return &mcp.ListResourcesParams{}
	case "resources/templates/list":
		return &mcp.ListResourceTemplatesParams{}
	case "resources/read":
		return &mcp.ReadResourceParams{}
	case "prompts/list":
		return &mcp.ListPromptsParams{}
	case "prompts/get":
		return &mcp.GetPromptParams{}
	case "subscriptions/listen":
		return &mcp.SubscriptionsListenParams{}
	case "skills/list":
		return &listSkillsParams{}
	case "skills/get":
		return &getSkillParams{}
	case "resources/directory/read":
		return &directoryParams{}
	case "tasks/get", "tasks/update", "tasks/cancel":
		return &taskParams{}
	}
	return nil
}

// checkParams says what is wrong with the params of a request, in words for whoever
// wrote it: the SDK's own name types of Go, and repeat the params, however long.
func checkParams(method string, params json.RawMessage) *jsonrpc.Error {
	wrong := func(format string, args ...any) *jsonrpc.Error {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage)}
	}
	into := paramsOf(method)
	if none := len(params) == 0 || string(params) == "null"; none && methods[method] {
		return wrong("%s needs params", method)
	} else if none || into == nil {
		return nil
	}
	if params[0] != '{' {
		return wrong("the params of %s must be an object", method)
	}
	err := json.Unmarshal(params, into)
	switch kind, ok := errors.AsType[*json.UnmarshalTypeError](err); {
	case ok && kind.Field != "":
		return wrong("params.%s of %s cannot be a JSON %s", skill.CleanText(kind.Field, 80), method, skill.CleanText(kind.Value, 40))
	case err != nil:
		return wrong("invalid params for %s; see the MCP specification", method)
	case method == "subscriptions/listen" && asksForTasks(params):
		return errNoTasks
	}
	return nil
}
