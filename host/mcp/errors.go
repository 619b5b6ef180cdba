package mcp

import (
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"openskill/sdk/skill"
)

// protocolError is an error as JSON-RPC has it: a number that clients know, and the
// error of a Normalized Skill Result as its data. What a tool did wrong is not one:
// it is a result (see [toolResult]).
func protocolError(err error) error {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return wire
	}
	e := skill.Failure("", "", skill.Meta{}, err).Error
	data, _ := json.Marshal(e) // plain data
	number := int64(jsonrpc.CodeInternalError)
	if e.Status >= 400 && e.Status < 500 && e.Code != skill.RateLimited && e.Code != skill.Cancelled {
		number = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: number, Message: e.Message, Data: data}
}

// invalid is a request that names what is not there, or not as it must be.
func invalid(op, subject, message string) error {
	return &skill.Error{Op: op, Code: skill.InvalidArgument, Subject: skill.CleanText(subject, 80), Message: message}
}

func notFound(op, subject, message string) error {
	return &skill.Error{Op: op, Code: skill.NotFound, Subject: skill.CleanText(subject, 80), Message: message}
}
