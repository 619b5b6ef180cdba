package share

import (
	"fmt"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

var greeterSkill = Statement{ID: "greeter", Version: "0.1.0", Digest: "sha256:" + strings.Repeat("0f", 32)}

func newKeys(t *testing.T) (PrivateKey, string) {
	t.Helper()
	k := musttest.Get(GenerateKey())(t)
	return k, k.Public().String()
}

func sign(t *testing.T, k PrivateKey, s Statement) []byte {
	t.Helper()
	return musttest.Get(Sign(k, s))(t)
}

func TestDecide(t *testing.T) {
	t.Parallel()
	acme, acmeKey := newKeys(t)
	other, otherKey := newKeys(t)
	stranger, _ := newKeys(t)
	p, problems := ParsePolicy(fmt.Appendf(nil, `
publishers:
  - name: acme
    keys: [%q]
    skills: ["acme-*", "greeter"]
    registries: ["localhost:5000/acme/*"]
  - {name: other, keys: [%q, %q], skills: ["g*r"], trust: trusted}
  - {name: nowhere, keys: [%q], skills: ["lost"]}
unsigned: refuse
`, acmeKey, otherKey, otherKey, acmeKey))
	if problems != nil {
		t.Fatal(problems)
	}
	open, problems := ParsePolicy([]byte("unsigned: community\n"))
	if problems != nil {
		t.Fatal(problems)
	}
	closed, problems := ParsePolicy([]byte("publishers: []\n"))
	if problems != nil {
		t.Fatal(problems)
	}
	named := func(id string) Statement {
		return Statement{ID: skill.ID(id), Version: "1.0.0", Digest: greeterSkill.Digest}
	}
	const here, there = "localhost:5000/acme/greeter", "localhost:5001/acme/greeter"
	for name, c := range map[string]struct {
		policy *Policy
		from   string
		what   Statement
		sig    []byte
		want   string // publisher and trust, or a code
	}{
		"good":                        {p, here, greeterSkill, sign(t, acme, greeterSkill), "acme community"},
		"good, by a star":             {p, here, named("acme-x"), sign(t, acme, named("acme-x")), "acme community"},
		"good, trusted":               {p, there, greeterSkill, sign(t, other, greeterSkill), "other trusted"},
		"files that are here":         {p, Anywhere, greeterSkill, sign(t, acme, greeterSkill), "acme community"},
		"the second of its entries":   {p, here, named("lost"), sign(t, acme, named("lost")), "nowhere community"},
		"another registry":            {p, there, greeterSkill, sign(t, acme, greeterSkill), "PUBLISHER_DENIED"},
		"another repository":          {p, "localhost:5000/acme2/greeterSkill", greeterSkill, sign(t, acme, greeterSkill), "PUBLISHER_DENIED"},
		"a bundle":                    {p, PlaceBundle, greeterSkill, sign(t, acme, greeterSkill), "PUBLISHER_DENIED"},
		"another id":                  {p, here, named("hello"), sign(t, acme, named("hello")), "PUBLISHER_DENIED"},
		"an id that begins the same":  {p, here, named("greeter2"), sign(t, acme, named("greeter2")), "PUBLISHER_DENIED"},
		"a stranger":                  {p, here, greeterSkill, sign(t, stranger, greeterSkill), "SIGNATURE_INVALID"},
		"of another":                  {p, here, greeterSkill, sign(t, acme, named("acme-x")), "SIGNATURE_INVALID"},
		"another's, and denied":       {p, here, named("hello"), sign(t, acme, greeterSkill), "SIGNATURE_INVALID"},
		"damaged":                     {p, here, greeterSkill, []byte("hello"), "SIGNATURE_INVALID"},
		"empty":                       {p, here, greeterSkill, []byte{}, "SIGNATURE_INVALID"},
		"missing":                     {p, here, greeterSkill, nil, "SIGNATURE_MISSING"},
		"the zero value":              {&Policy{}, here, greeterSkill, sign(t, acme, greeterSkill), "SIGNATURE_INVALID"},
		"the zero value, unsigned":    {&Policy{}, here, greeterSkill, nil, "SIGNATURE_MISSING"},
		"nobody":                      {closed, here, greeterSkill, nil, "SIGNATURE_MISSING"},
		"unsigned":                    {open, here, greeterSkill, nil, " community"},
		"unsigned, with a signature":  {open, here, greeterSkill, sign(t, acme, greeterSkill), " community"},
		"unsigned, damaged":           {open, here, greeterSkill, []byte("hello"), "SIGNATURE_INVALID"},
		"a key by hand":               {OfKeys([]PublicKey{acme.Public()}, false), there, named("x"), sign(t, acme, named("x")), " community"},
		"a key by hand, a stranger":   {OfKeys([]PublicKey{acme.Public()}, true), there, greeterSkill, sign(t, stranger, greeterSkill), "SIGNATURE_INVALID"},
		"a key by hand, and unsigned": {OfKeys([]PublicKey{acme.Public()}, true), there, greeterSkill, nil, " community"},
	} {
		d, err := c.policy.Decide(c.from, c.what, c.sig)
		got := fmt.Sprintf("%s %s", d.Publisher, d.Trust)
		if err != nil {
			got = string(skill.CodeOf(err))
			if d != (Decision{}) {
				t.Errorf("%s: refused, and still %+v", name, d)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, c.want, err)
		}
	}
}

// Half a policy is none, and each problem has its line.
func TestParseProblems(t *testing.T) {
	t.Parallel()
	_, k := newKeys(t)
	head := "publishers:\n  - name: a\n    keys: [" + k + "]\n    skills: [a]\n"
	for src, want := range map[string]string{
		"":                                      "0: the file is empty",
		"[]":                                    "1: a trust policy must be a map",
		"publisher: []":                         `1: unknown key "publisher" in a trust policy`,
		"publishers: {}":                        "1: publishers must be a list",
		"publishers: [a]":                       "1: a publisher must be a map",
		"unsigned: trusted":                     "1: unsigned must be refuse or community",
		"unsigned: true":                        "1: unsigned must be refuse or community",
		"unsigned: community\nunsigned: refuse": "2: the key \"unsigned\" appears twice",
		"a: &x 1":                               "anchors",
		"publishers:\n  - name: a":              "2: a publisher has no key keys",
		head + "    trust: builtin":             "5: trust must be community or trusted",
		head + "    trusted: yes":               `5: unknown key "trusted" in a publisher`,
		head + "    registries: []":             "5: registries must be a list of 1 to 100",
		head + "    registries: [\"a b\"]":      "5: registries has the invalid pattern \"a b\"",
		head + "    registries: [\"a?\"]":       "5: registries has the invalid pattern \"a?\"",
		head + "  - name: a\n    keys: [" + k + "]\n    skills: [b]":                                        "5: duplicate publisher \"a\"",
		"publishers:\n  - name: a\n    keys: [RWx]\n    skills: [a]":                                        "3: \"RWx\" is not a minisign public key",
		"publishers:\n  - name: a\n    keys: []\n    skills: [a]":                                           "3: keys must be a list of 1",
		"publishers:\n  - name: a\n    keys: " + k + "\n    skills: [a]":                                    "3: keys must be a list",
		"publishers:\n  - name: a\n    keys: [1]\n    skills: [a]":                                          "3: keys must hold texts",
		"publishers:\n  - name: \"\"\n    keys: [" + k + "]\n    skills: [a]":                               "2: name must be one line",
		"publishers:\n  - name: a\n    keys: [" + k + "]\n    skills: [\"a/b\"]":                            "4: skills has the invalid pattern \"a/b\"",
		"publishers:\n  - name: a\n    keys: [" + k + "]\n    skills: [[a]]":                                "4: skills must hold texts",
		"publishers:\n  - name: a\n    keys: [" + k + "]\n    skills: [" + strings.Repeat("a,", 100) + "a]": "4: skills must be a list of 1 to 100",
		"publishers: [" + strings.Repeat("{},", 200) + "{}]":                                                "1: publishers must be a list of at most 200",
		"publishers: [" + strings.Repeat("x", MaxFile) + "]":                                                "the limit is",
	} {
		p, problems := ParsePolicy([]byte(src))
		found := false
		for _, problem := range problems {
			found = found || strings.Contains(problem.String(), want)
		}
		if p != nil || !found {
			t.Errorf("%.80q: %v, %v; want %q", src, p, problems, want)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"", "", true},
		{"*", "", true},
		{"*", "anything/at:all", true},
		{"a*", "a", true},
		{"a*", "ba", false},
		{"*a", "ba", true},
		{"*a", "ab", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"*b*", "abc", true},
		{"**", "x", true},
		{"*ab*ab", "ab", false},
		{"*ab*ab", "abab", true},
		{strings.Repeat("*a", 150), strings.Repeat("a", 149) + "b", false}, // which takes for ever if it is done badly
	} {
		if got := match(c.pattern, c.s); got != c.want {
			t.Errorf("%q %q: %t", c.pattern, c.s, got)
		}
	}
}
