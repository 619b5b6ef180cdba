package sandbox

import (
	"context"
	"encoding/json"

	"openskill/sdk/skill"
	"openskill/wasm"
)

// networkFile is the file that guests ask the network through; compiled ones may
// import the functions of wasi.OutgoingModule instead.
const networkFile = "/dev/http"

// fetch answers the requests of a call. That of a worker is empty where its host has
// no network.
func (s *Images) fetch(call *skill.Call) wasm.Fetch {
	ask := skill.Fetch(func(context.Context, []byte) []byte { return nil })
	if s.Outgoing != nil {
		ask = s.Outgoing.For(call)
	}
	return func(ctx context.Context, request []byte) []byte {
		if response := ask(ctx, request); len(response) > 0 {
			return response
		}
		return refusal("network access is disabled for skills on this host; the operator can allow requests in OPENSKILL_HTTP_ALLOW, or to scripts by openskill skills allow")
	}
}

// tooEarly answers start-ups: what they see is part of many calls.
func tooEarly(context.Context, []byte) []byte {
	return refusal("requests are allowed only after the skill began to read standard input: code before that runs once for all calls")
}

// refusal is a response as package host/workers/egress writes it.
func refusal(message string) []byte {
	type failure struct {
		Code    skill.Code `json:"code"`
		Message string     `json:"message"`
	}
	head, _ := json.Marshal(struct { // strings only
		Status  int                 `json:"status"`
		URL     string              `json:"url"`
		Headers map[string][]string `json:"headers"`
		Error   failure             `json:"error"`
	}{Headers: map[string][]string{}, Error: failure{skill.NetworkDenied, message}})
	return append(head, '\n')
}
