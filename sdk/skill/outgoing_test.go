package skill_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

func TestHTTPRuleText(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.example.com":                    "https://api.example.com GET,HEAD",
		"https://api.example.com:443/":               "https://api.example.com GET,HEAD",
		"HTTPS://API.Example.COM GET":                "https://api.example.com GET",
		"https://api.example.com:8443/v1/ POST,GET":  "https://api.example.com:8443/v1/ GET,POST",
		"http://127.0.0.1:8080/x-y/z.w_~":            "http://127.0.0.1:8080/x-y/z.w_~ GET,HEAD",
		"http://[::1]:8080 OPTIONS":                  "http://[::1]:8080 OPTIONS",
		"http://[2001:db8::1]":                       "http://[2001:db8::1] GET,HEAD",
		" https://*.example.com   PUT,PATCH,DELETE ": "https://*.example.com PUT,PATCH,DELETE",
		"https://*":                     "https://* GET,HEAD",
		"https://xn--bcher-kva.example": "https://xn--bcher-kva.example GET,HEAD",
		"http://localhost:80":           "http://localhost GET,HEAD",
		"http://_dmarc.a-b.example":     "http://_dmarc.a-b.example GET,HEAD",
		"http://example.com GET,HEAD,POST,PUT,DELETE,OPTIONS": "http://example.com GET,HEAD,POST,PUT,DELETE,OPTIONS",
	} {
		r, err := skill.ParseHTTPRule(text)
		if err != nil || r.String() != want {
			t.Errorf("%q: %v, %v; want %q", text, r, err, want)
			continue
		}
		// The text is read as the same rule, alone and in JSON.
		if again, err := skill.ParseHTTPRule(r.String()); err != nil || again.String() != want {
			t.Errorf("%q is read as %v, %v", want, again, err)
		}
		b, err := json.Marshal(skill.Permissions{HTTP: []skill.HTTPRule{r}})
		if err != nil || !strings.Contains(string(b), `"http":["`+want+`"]`) {
			t.Errorf("%s, %v", b, err)
		}
		var p skill.Permissions
		if err := json.Unmarshal(b, &p); err != nil || len(p.HTTP) != 1 || p.HTTP[0].String() != want {
			t.Errorf("%s is read as %v, %v", b, p, err)
		}
	}
}

func TestHTTPRuleProblems(t *testing.T) {
	for _, text := range []string{
		"", " ", "example.com", "ftp://example.com", "https:example.com", "https://", "https:///x", "https://:443", "//example.com",
		"https://example.com.", "https://.example.com", "https://exa mple.com GET", "https://example.com GET POST", "https://example..com",
		"https://-example.com", "https://example-.com", "https://ex%61mple.com", "https://user@example.com", "https://user:pw@example.com",
		"https://example.com:0", "https://example.com:65536", "https://example.com:0443", "https://example.com:", "https://example.com:x",
		"https://example.com/?q", "https://example.com?q", "https://example.com#f", "https://example.com/%41", "https://example.com/../x", "https://example.com/./x",
		"https://example.com/a b", "https://example.com get", "https://example.com GET,", "https://example.com GET,GET", "https://example.com CONNECT", "https://example.com *",
		"https://*.*.example.com", "https://*example.com", "https://a.*.example.com", "https://*.127.0.0.1", "https://*.1", "https://**", "https://*.",
		"http://127.1", "http://0x7f.0.0.1", "http://0177.0.0.1", "http://2130706433", "http://0x7f000001", "http://127.0.0.01", "http://256.0.0.1", "http://1.2.3.4.5", "http://a.b.1",
		"http://[::ffff:127.0.0.1]", "http://[0:0:0:0:0:0:0:1]", "http://[::1%25lo]", "http://[::1", "http://::1", "http://[127.0.0.1]", "http://[]", "http://[::1]x", "http://[::1]:",
		"http://\u00e4.example", "http://" + strings.Repeat("a", 64) + ".example", "http://" + strings.Repeat("a.", 127) + "example", "https://example.com/" + strings.Repeat("x", 1024),
	} {
		r, err := skill.ParseHTTPRule(text)
		var e *skill.Error
		if !errors.As(err, &e) || e.Code != skill.InvalidArgument || e.Message == "" || len(e.Message) > 512 {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
}
