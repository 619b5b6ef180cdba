package llmservice_test

import (
	"fmt"
	"net/http"
	"testing"

	"openskill/host/llm"
	"openskill/host/llm/internal/exchange"
	"openskill/host/llm/llmservice"
	"openskill/sdk/skill"
)

const key = "sk-secret-1234567890"

func TestExchanges(t *testing.T) {
	exchange.Run(t, "testdata", func(base string) (llm.Provider, error) {
		return llmservice.New(llmservice.Options{BaseURL: base + "/", Key: key})
	})
}

func dial(base string, c *http.Client) (llm.Provider, error) {
	return llmservice.New(llmservice.Options{BaseURL: base, Key: key, HTTP: c})
}

func whole(text string) string {
	return fmt.Sprintf(`{"data":{"choices":[{"message":{"content":%q}}],"usage":{"total_tokens":3}}}`, text)
}

func TestHostile(t *testing.T) { exchange.Hostile(t, exchange.Form{Whole: whole}, dial) }

func TestOptions(t *testing.T) {
	for _, o := range []llmservice.Options{{BaseURL: "host"}, {Key: "a key"}} {
		if _, err := llmservice.New(o); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(whole("one")))
	f.Add([]byte(`{"data":null,"error":{"message":"no"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &llm.Request{MaxTokens: 10, Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}
		exchange.Fuzz(t, r, body, func(c *http.Client) (llm.Provider, error) { return dial("http://vendor.invalid", c) })
	})
}
