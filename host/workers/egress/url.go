package egress

import (
	"net/url"
	"strings"

	"openskill/internal/outgoing"
	"openskill/sdk/skill"
)

// maxURL is the length of an address in bytes.
const maxURL = 4096

// target is an address that was read once; everything after works on this.
type target struct {
	origin skill.HTTPOrigin
	path   string // escaped, as it is sent; never empty
	query  string // with its ?; "" for none
}

func (t *target) String() string { return t.origin.String() + t.path + t.query }

// CheckURL returns an error, which a request to the address would get.
func CheckURL(s string) error {
	_, err := parseTarget(s)
	return err
}

// parseTarget reads an address. The error is a *skill.Error with INVALID_ARGUMENT.
func parseTarget(s string) (*target, error) {
	if len(s) > maxURL {
		return nil, invalid("the url has more than 4096 bytes")
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\\\"<>^`{|}", c) >= 0 {
			return nil, invalid("the url has a character that must be percent-encoded; write hosts in other scripts as xn--…")
		}
	}
	origin, rest, err := skill.ParseHTTPOrigin(s)
	if err != nil {
		return nil, err
	}
	t := &target{origin: origin}
	if strings.Contains(rest, "#") {
		return nil, invalid("the url has a fragment (#…); leave it out")
	}
	if i := strings.IndexByte(rest, '?'); i >= 0 {
		rest, t.query = rest[:i], rest[i:]
	}
	t.path = rest
	if rest == "" {
		t.path = "/"
	}
	if _, err := url.PathUnescape(t.path); err != nil {
		return nil, invalid("the url path has a % without two hexadecimal digits after it")
	}
	if outgoing.HasDotSegments(t.path) {
		return nil, invalid("the url path has a . or .. part; write the full path")
	}
	return t, nil
}

// url gives the target to net/http, which sends it as it is.
func (t *target) url() *url.URL {
	host := t.origin.String()
	_, host, _ = strings.Cut(host, "://")
	u := &url.URL{Scheme: t.origin.Scheme, Host: host, RawQuery: strings.TrimPrefix(t.query, "?"), ForceQuery: t.query == "?"}
	u.Path, _ = url.PathUnescape(t.path) // was tried by parseTarget
	u.RawPath = t.path
	return u
}

// redirected gives where a Location leads from t.
func (t *target) redirected(location string) (*target, error) {
	next, err := t.url().Parse(location)
	if err == nil && next.Opaque == "" && next.User == nil {
		next.Fragment, next.RawFragment = "", ""
		var to *target
		if to, err = parseTarget(next.String()); err == nil {
			return to, nil
		}
	}
	return nil, denied("%s redirects to an invalid url", t.origin)
}

func invalid(message string) error {
	return &skill.Error{Op: "egress.Do", Code: skill.InvalidArgument, Message: message}
}
