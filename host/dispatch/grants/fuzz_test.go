package grants

import (
	"testing"

	"openskill/internal/outgoing"
	"openskill/sdk/skill"
)

// FuzzSmaller: what is granted permits a request if, and only if, the manifest and the
// operator both do.
func FuzzSmaller(f *testing.F) {
	for _, s := range [][3]string{
		{"https://*.a.example/v1 GET,POST", "https://b.a.example POST", "https://b.a.example/v1/x"},
		{"http://*", "http://127.0.0.1", "http://127.0.0.1/"},
		{"https://*", "https://*.a.example/v1/", "https://x.y.a.example/v1/../x"},
		{"https://a.example/v1", "https://a.example/v1/", "https://a.example/v1"},
		{"https://a.example:8443/x", "https://a.example:8443", "https://a.example:8443/x;y/%2e%2e"},
		{"http://[2001:db8::1]/a/", "http://[2001:db8::1]/a", "http://[2001:db8::1]/a//b"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, asked, allowed, address string) {
		want, err := skill.ParseHTTPRule(asked)
		if err != nil {
			return
		}
		operator, problem, _, _ := Parse("@acme/up "+allowed, "", "", nil)
		if problem != nil {
			return
		}
		may, err := skill.ParseHTTPRule(allowed)
		if err != nil {
			return // several entries, or something else that one rule is not
		}
		granted, _ := operator.For(Skill{ID: "up", Trust: skill.Community, Owner: "acme"}, skill.Permissions{HTTP: []skill.HTTPRule{want}})
		origin, path, err := skill.ParseHTTPOrigin(address)
		if err != nil {
			return
		}
		for _, method := range skill.HTTPMethods {
			got := len(granted) == 1 && outgoing.Permits(granted[0], method, origin, path)
			if both := outgoing.Permits(want, method, origin, path) && outgoing.Permits(may, method, origin, path); got != both {
				t.Fatalf("%s and %s give %v, which permits %s %s: %t, want %t", want, may, granted, method, address, got, both)
			}
		}
		others, _ := operator.For(Skill{ID: "up", Trust: skill.Community, Owner: "other"}, skill.Permissions{HTTP: []skill.HTTPRule{want}})
		if len(others) > 0 {
			t.Fatalf("another tenant gets %v", others)
		}
	})
}
