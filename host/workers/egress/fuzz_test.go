package egress

import (
	"bytes"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// FuzzTarget holds what is read of an address against net/url's reading of it: where
// two parsers see two hosts, one of them is fooled. What is accepted goes out as it
// was checked.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{
		"https://api.example.com/v1/x?y=z", "http://127.0.0.1:8080/", "http://[::1]:80", "http://a.example@b.example/", "http://a.example:80@b/", `http://a\@b/`,
		"http://a.example/%2e%2e/x", "http://0x7f.1/", "http://a.example./", "http://a.example#@b.example", "http://a.example?@b.example/", "http:///a.example", "http://[::1]a.example/",
		"http://[::ffff:127.0.0.1]/", "http://a.example:0080", "HTTP://A.EXAMPLE", "http://a.example/;@b", "//a.example", "http://a%00.example", "http://xn--a.example/", "http://127.0.0.1.example/",
	} {
		f.Add(s, "/next")
		f.Add("http://a.example/x/y", s)
	}
	f.Fuzz(func(t *testing.T, s, location string) {
		first, err := parseTarget(s)
		if err != nil {
			var e *skill.Error
			if !asError(err, &e) || e.Message == "" || len(e.Message) > 512 || skill.CleanText(e.Message, 1024) != e.Message {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		same(t, s, first)
		if next, err := first.redirected(location); err == nil {
			same(t, next.String(), next)
		}
	})
}

func asError(err error, e **skill.Error) bool {
	var ok bool
	*e, ok = err.(*skill.Error) //nolint:errorlint // the very value
	return ok
}

// same holds a target against net/url, and what is sent against the target.
func same(t *testing.T, s string, got *target) {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatalf("%q is accepted, and net/url says %v", s, err)
	}
	if u.User != nil || u.Fragment != "" || u.Opaque != "" || !strings.EqualFold(u.Scheme, got.origin.Scheme) ||
		!strings.EqualFold(u.Hostname(), strings.Trim(got.origin.Host, "[]")) {
		t.Fatalf("%q is read as %+v, and by net/url as %+v", s, got, u)
	}
	out := got.url()
	if out.Host != strings.TrimPrefix(got.origin.String(), got.origin.Scheme+"://") || out.RequestURI() != got.path+got.query {
		t.Fatalf("%q is sent as %s to %s, and was checked as %+v", s, out.RequestURI(), out.Host, got)
	}
	again, err := parseTarget(got.String())
	if err != nil || *again != *got {
		t.Fatalf("%q is read as %+v, and that as %+v, %v", s, got, again, err)
	}
	// One spelling: a host is an address for the system's parsers only where it is for us.
	if a, err := netip.ParseAddr(strings.Trim(got.origin.Host, "[]")); err == nil {
		if b, ok := got.origin.Address(); !ok || a != b || a.Is4In6() {
			t.Fatalf("%q: the address %v", s, a)
		}
	}
}

// FuzzRead feeds what guests write. Nothing of it panics, and what is accepted is
// what the first line says.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"url": "http://a.example"}`, "{\"url\": \"x\", \"headers\": {\"a\": \"b\"}}\nbody\n", "", "\n", `{"URL": "x", "url": "y"}`, `{"timeout_ms": 4294967296}`, `{"headers": {"Host": "x"}}`} {
		f.Add([]byte(s))
	}
	c := New(nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := c.read(b)
		if err != nil {
			return
		}
		if _, body, _ := bytes.Cut(b, []byte("\n")); !bytes.Equal(body, r.Body) {
			t.Fatalf("the body of %q is %q", b, r.Body)
		}
		h, err := c.header(r.Header)
		if err != nil {
			return
		}
		for name, values := range h {
			if len(values) != 1 || strings.ContainsAny(name+values[0], "\r\n\x00") || strings.EqualFold(name, "host") || strings.EqualFold(name, "content-length") {
				t.Fatalf("the header %q: %q of %q", name, values, b)
			}
		}
	})
}
