package outgoing_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/internal/outgoing"
	"openskill/sdk/skill"
)

func TestZeroHTTPRulePermitsNothing(t *testing.T) {
	o, _, err := skill.ParseHTTPOrigin("https://example.com")
	musttest.Do(t, err)
	for _, r := range []skill.HTTPRule{{}, {HTTPOrigin: o}} {
		if outgoing.Permits(r, "GET", o, "/") || outgoing.Permits(r, "", skill.HTTPOrigin{}, "") {
			t.Errorf("%+v permits something", r)
		}
	}
}

// What two rules permit together is what each of them permits, neither more nor less.
func TestHTTPRulesMeet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	rule := func() skill.HTTPRule {
		r, err := skill.ParseHTTPRule(pick("http", "https", "https", "https") + "://" +
			pick("*", "*.example", "*.a.example", "a.example", "b.a.example", "c.b.a.example", "example", "127.0.0.1", "[::1]") + pick("", "", "", "", ":8080") +
			pick("", "/", "/v1", "/v1/", "/v1/x", "/v1/x/", "/v10") + " " + pick("GET", "POST", "GET,POST", "GET,HEAD,PUT"))
		musttest.Do(t, err)
		return r
	}
	met := 0
	for range 4_000 {
		a, b := rule(), rule()
		m, ok := outgoing.Meet(a, b)
		if n, ok2 := outgoing.Meet(b, a); ok != ok2 || n.String() != m.String() {
			t.Fatalf("%v and %v meet in %v, and the other way round in %v", a, b, m, n)
		}
		for range 20 {
			o, path, err := skill.ParseHTTPOrigin(pick(a.Scheme, b.Scheme) + "://" +
				pick("example", "a.example", "b.a.example", "c.b.a.example", "xa.example", "127.0.0.1", "[::1]") + pick("", "", "", ":8080") +
				pick("/", "/v1", "/v1/", "/v1/x", "/v1/x/y", "/v10", "/v1/%2e%2e/x"))
			musttest.Do(t, err)
			method := pick("GET", "POST", "HEAD", "PUT")
			both := outgoing.Permits(a, method, o, path) && outgoing.Permits(b, method, o, path)
			if got := ok && outgoing.Permits(m, method, o, path); got != both {
				t.Fatalf("%v and %v meet in %v (%v); %s %s%s: %v, want %v", a, b, m, ok, method, o, path, got, both)
			}
			if both {
				met++
			}
		}
	}
	if met < 100 {
		t.Errorf("only %d requests were permitted by both rules", met)
	}
}

func TestValidEnvName(t *testing.T) {
	for name, want := range map[string]bool{
		"A": true, "API_KEY": true, "_x9": true, "tz": true, strings.Repeat("A", 128): true,
		"": false, "9A": false, "A-B": false, "A=B": false, "A B": false, "\u00c4": false, "A\x00": false, strings.Repeat("A", 129): false,
		"OPENSKILL_HEAP": false, "openskill_heap": false, "PYTHONPATH": false, "Pythonhome": false, "HOME": false, "TMPDIR": false,
		"LD_PRELOAD": false, "DYLD_INSERT_LIBRARIES": false, "GLIBC_TUNABLES": false,
	} {
		if got := outgoing.ValidEnvName(name); got != want {
			t.Errorf("%.40q: %v, want %v", name, got, want)
		}
	}
}
