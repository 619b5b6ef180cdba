package host

import (
	"net/http"
	"strings"
	"testing"
)

// TestOriginsOfTheHost: where nobody must show who they are, pages of other programs on this
// machine may not act as its operator, also not those at the address of the default.
func TestOriginsOfTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		flags  map[string]string
		origin string // "": the host's own
		want   int
	}{
		"its own":                  {nil, "", 200},
		"the default of settings":  {nil, "http://127.0.0.1:8000", 403},
		"what the operator names":  {map[string]string{"http-base-url": "https://skills.example"}, "https://skills.example", 200},
		"the default, if named":    {map[string]string{"http-base-url": "http://127.0.0.1:8000"}, "http://127.0.0.1:8000", 200},
		"another, if one is named": {map[string]string{"http-base-url": "https://skills.example"}, "http://127.0.0.1:8000", 403},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, settings(t, c.flags))
			if c.origin == "" {
				c.origin = v.url
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.url+"/skills/quick:disable", strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			req.Close = true
			req.Header.Set("Origin", c.origin)
			req.Header.Set("Sec-Fetch-Site", "same-site")
			res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Body.Close(); err != nil || res.StatusCode != c.want {
				t.Errorf("%d, want %d (%v)", res.StatusCode, c.want, err)
			}
		})
	}
}
