package llm

import (
	"fmt"
	"net/http"
	"testing"

	"openskill/sdk/skill"
)

func TestServiceExchanges(t *testing.T) {
	runExchanges(t, "testdata/service", func(base string) (Provider, error) {
		return Service(Vendor{BaseURL: base + "/", Key: key})
	})
}

func dialService(base string, c *http.Client) (Provider, error) {
	return Service(Vendor{BaseURL: base, Key: key, HTTP: c})
}

func serviceAnswer(text string) string {
	return fmt.Sprintf(`{"data":{"choices":[{"message":{"content":%q}}],"usage":{"total_tokens":3}}}`, text)
}

func TestServiceHostile(t *testing.T) { runHostile(t, form{Whole: serviceAnswer}, dialService) }

func TestServiceOptions(t *testing.T) {
	for _, o := range []Vendor{{BaseURL: "host"}, {Key: "a key"}} {
		if _, err := Service(o); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func FuzzServiceAnswers(f *testing.F) {
	f.Add([]byte(serviceAnswer("one")))
	f.Add([]byte(`{"data":null,"error":{"message":"no"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &Request{MaxTokens: 10, Messages: []Message{{Role: User, Text: "hi"}}}
		fuzzAnswer(t, r, body, func(c *http.Client) (Provider, error) { return dialService("http://vendor.invalid", c) })
	})
}
