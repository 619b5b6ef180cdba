package llm

import (
	"cmp"
	"net/http"
	"net/url"
	"time"

	"openskill/sdk/skill"
)

// Vendor is where a provider is asked, and by which key.
type Vendor struct {
	Name    string       // in errors; "": openai, anthropic or llm-service
	BaseURL string       // "": that of the vendor; of the service http://localhost:8601
	Key     string       // "": none is sent
	HTTP    *http.Client // nil: one of its own, which knows no proxy, for as many conversations as there are
}

// afterwards is how long a stream may go on after the reason why the reply ended has come:
// the usage and the mark of its end belong to it, but some servers send neither, and keep
// the connection.
const afterwards = 3 * time.Second

// connect checks what all providers are given, and makes what all have. name and base are
// those of a provider whose options have none; form writes tools in its words.
func connect(o Vendor, name, base string, form func([]skill.Tool) any) (*client, *url.URL, error) {
	o.Name = cmp.Or(o.Name, name)
	address, err := baseURL(o.BaseURL, base)
	if err != nil {
		return nil, nil, err
	}
	if err := checkKey(o.Key); err != nil {
		return nil, nil, err
	}
	c := newClient(o)
	c.tools, err = newToolWriter(form)
	return c, address, err
}
