package llm

import (
	"errors"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// The status that an error would have had, from what the many servers say within a stream.
func TestStatusOf(t *testing.T) {
	for said, want := range map[string]int{
		`{"message":"x","type":"server_error"}`:                         500,
		`{"message":"x","code":429}`:                                    429,
		`{"message":"x","code":"503"}`:                                  503,
		`{"message":"x","code":"rate_limit_exceeded"}`:                  429,
		`{"message":"x","type":"insufficient_quota"}`:                   429,
		`{"message":"x","type":"overloaded_error"}`:                     503,
		`{"message":"x","code":"invalid_api_key"}`:                      401,
		`{"message":"x","type":"invalid_request_error"}`:                400,
		`{"message":"x","status":502}`:                                  502,
		`{"error":{"message":"x","code":403}}`:                          403,
		`{"message":"x","code":200}`:                                    500,
		`{"message":"x","code":-1e999,"type":[]}`:                       500,
		`"no capacity"`:                                                 500,
		`[]`:                                                            500,
		strings.Repeat(`{"error":`, 50) + "7" + strings.Repeat("}", 50): 500,
	} {
		if got := completionStatus([]byte(said)); got != want {
			t.Errorf("%s: %d, want %d", said, got, want)
		}
	}
}

func TestCompletionUsage(t *testing.T) {
	c := newClient(Vendor{Name: "v"})
	for usage, want := range map[string]Usage{
		`{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}`:  {Prompt: 3, Completion: 4},
		`{"prompt_tokens":3,"completion_tokens":4}`:                   {Prompt: 3, Completion: 4},
		`{"prompt_tokens":3,"completion_tokens":4,"total_tokens":70}`: {Prompt: 3, Completion: 67}, // thought, and not said
		`{"total_tokens":7}`: {Completion: 7},
		`{"prompt_tokens":"3","completion_tokens":4.0,"total_tokens":null}`: {Prompt: 3, Completion: 4},
		`{"prompt_tokens":-3,"completion_tokens":1e999}`:                    {Completion: 1e9},
		`{"prompt_tokens":[],"completion_tokens":{}}`:                       {},
		`null`: {},
		`7`:    {},
	} {
		r := newCompletions(c, &Request{}, nil)
		if err := r.whole([]byte(`{"choices":[{"message":{"content":"x"}}],"usage":` + usage + `}`)); err != nil {
			t.Errorf("%s: %v", usage, err)
			continue
		}
		reply, err := r.reply()
		if err != nil || reply.Usage != want {
			t.Errorf("%s: %+v, %v", usage, reply, err)
		}
	}
}

// A stream tells its usage where it wants to, and what it has told is not lost.
func TestCompletionUsageInStreams(t *testing.T) {
	r := newCompletions(newClient(Vendor{Name: "v"}), &Request{}, nil)
	for _, chunk := range []string{
		`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`,
		`{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		`{"choices":[],"usage":null}`,
		`{"choices":[],"usage":{}}`,
	} {
		musttest.Do(t, r.chunk("", []byte(chunk)))
	}
	if reply, err := r.reply(); err != nil || reply.Usage != (Usage{Prompt: 3, Completion: 2}) || reply.Text != "ab" {
		t.Errorf("%+v, %v", reply, err)
	}
}

// What has the wrong type is left out, and does not take the rest with it.
func TestMistyped(t *testing.T) {
	c := newClient(Vendor{Name: "v"})
	for answer, want := range map[string]string{
		`{"choices":[{"index":"0","message":{"content":"x"}}]}`:                                                       "x",
		`{"choices":[null,7,{"message":{"content":"x","tool_calls":{}}}]}`:                                            "x",
		`{"choices":[{"message":{"content":["y",null,{"type":"thinking","text":"hm"},{"type":"text","text":"x"}]}}]}`: "x",
		`{"choices":[{"message":{"content":{"a":1}},"finish_reason":["stop"]}]}`:                                      `{"a":1}`,
		`{"choices":[{"message":{"content":"x","refusal":null},"delta":[]}],"error":{}}`:                              "x",
	} {
		r := newCompletions(c, &Request{}, nil)
		if err := r.whole([]byte(answer)); err != nil {
			t.Errorf("%s: %v", answer, err)
			continue
		}
		if reply, err := r.reply(); err != nil || reply.Text != want {
			t.Errorf("%s: %+v, %v", answer, reply, err)
		}
	}
	for _, answer := range []string{`[]`, `7`, `"x"`, `{`, ``, `{"choices":7}`, `null`} {
		r := newCompletions(c, &Request{}, nil)
		err := r.whole([]byte(answer))
		if err == nil {
			_, err = r.reply()
		}
		if failed, ok := errors.AsType[*skill.Error](err); !ok || failed.Code != skill.AgentLLMParseError {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
