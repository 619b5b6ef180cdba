package llmtest

import (
	"encoding/json"
	"iter"
	"net/http"

	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// service is the wire form of the llm-service: OpenAI's messages and tools, a slot in
// place of a model, answers in an envelope, and no streams.
type service struct{ openAI }

func (service) name() string { return "llm-service" }

func (service) key(h http.Header) string { return h.Get("X-Api-Key") }

// read implements wire.
func (service) read(_ http.Header, body []byte) (*asked, error) {
	var in struct {
		openAIAsk
		Slot llm.Slot `json:"slot"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, bad("the body is not JSON: " + skill.CleanText(err.Error(), 200))
	}
	switch {
	case in.Slot != llm.Fast && in.Slot != llm.Reasoning:
		return nil, bad("slot: it must be fast or reasoning")
	case in.Stream:
		return nil, bad("stream: it must be false")
	}
	q := &asked{}
	q.Slot, q.Temperature, q.JSON = in.Slot, in.Temperature, in.ResponseFormat != nil
	if in.MaxTokens != nil {
		q.MaxTokens = *in.MaxTokens
	}
	if len(in.Messages) == 0 {
		return nil, bad("messages: it must have at least one")
	}
	return q, in.talk(&q.Request)
}

// whole implements wire.
func (w service) whole(q *asked, a *answer) any {
	data := object{"model": "scripted", "choices": []object{{"index": 0, "message": w.message(a), "finish_reason": openAIStop(a.reply.Stop)}}}
	if a.usage {
		data["usage"] = openAIUsage(a)
	}
	return object{"data": data, "meta": object{"request_id": "req_llm-service", "timestamp": "2026-01-01T00:00:00Z"}}
}

// stream implements wire; it is never asked.
func (service) stream(*asked, *answer) iter.Seq[[]byte] { return func(func([]byte) bool) {} }

// fail implements wire.
func (service) fail(status int, message string) any {
	code := "LLM_INVALID_REQUEST"
	switch {
	case status == http.StatusUnauthorized:
		code = "SHARED_UNAUTHORIZED"
	case status == http.StatusTooManyRequests:
		code = "LLM_RATE_LIMITED"
	case status >= http.StatusInternalServerError:
		code = "LLM_PROVIDER_UNAVAILABLE"
	}
	return object{"error": object{"code": code, "message": message}, "meta": object{"request_id": "req_llm-service", "timestamp": "2026-01-01T00:00:00Z"}}
}
