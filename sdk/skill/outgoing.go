package skill

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Outgoing is what runs can ask of the network. It is safe for concurrent use.
//
// A request and a response are bytes that a guest writes and reads: one line of
// JSON, and behind it the body as it is. docs/authors.md has the fields. Whatever
// is wrong with a request, and a refusal too, is a response: it is the guest's to
// deal with, and its run goes on.
type Outgoing interface {
	// For begins for one run of call, whose Grants say where requests may go. What
	// bounds the requests of a run together is counted in the Fetch.
	For(call *Call) Fetch
}

// Fetch answers one request of a guest after the other. It returns soon after ctx
// has ended, and does not keep the request. An empty response says that there is no
// network.
type Fetch func(ctx context.Context, request []byte) (response []byte)

// HTTPMethods are the methods that a request may have, in the order in which rules
// list them.
var HTTPMethods = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// HTTPOrigin is where a request goes: the part of an address before the path, in
// the one spelling that is accepted.
type HTTPOrigin struct {
	Scheme string // http or https
	// Host is a name in lower case without a dot at its end, or the address of a
	// machine: 192.0.2.1, or [2001:db8::1].
	Host string
	Port uint16
}

// String gives the origin as in an address; the scheme's own port is left out.
func (o HTTPOrigin) String() string {
	s := o.Scheme + "://" + o.Host
	if o.Port != schemePort(o.Scheme) {
		s += ":" + strconv.Itoa(int(o.Port))
	}
	return s
}

// Address is Host where that is the address of a machine.
func (o HTTPOrigin) Address() (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Trim(o.Host, "[]"))
	return a, err == nil
}

func schemePort(scheme string) uint16 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// ParseHTTPOrigin reads the beginning of an address, and gives what follows the
// host and port. There is one spelling for each machine: no user, no address in
// hexadecimal, octal or fewer than four numbers, no IPv4 within IPv6, no zone, no
// dot at the end, no % in a host. Letters other than a to z are written as
// in the DNS (xn--…). The error is an *Error.
func ParseHTTPOrigin(s string) (o HTTPOrigin, rest string, err error) { return parseOrigin(s, false) }

func parseOrigin(s string, wildcard bool) (o HTTPOrigin, rest string, err error) {
	scheme, after, ok := strings.Cut(s, "://")
	o.Scheme = strings.ToLower(scheme)
	if !ok || o.Scheme != "http" && o.Scheme != "https" {
		return o, "", badHTTP(s, "must begin with https:// or http://")
	}
	end := strings.IndexAny(after, "/?#")
	if end < 0 {
		end = len(after)
	}
	host, rest := after[:end], after[end:]
	o.Port = schemePort(o.Scheme)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		n, err := strconv.ParseUint(host[i+1:], 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != host[i+1:] {
			return o, "", badHTTP(s, "has a port that is no number from 1 to 65535")
		}
		o.Port, host = uint16(n), host[:i]
	}
	host = strings.ToLower(host)
	if !validHost(host) && (!wildcard || !validWildcard(host)) {
		return o, "", badHTTP(s, "has a host that is neither a name, like api.example.com, nor an address written as 192.0.2.1 or [2001:db8::1]")
	}
	o.Host = host
	return o, rest, nil
}

func badHTTP(s, why string) error {
	shown := CleanText(s, 120)
	if shown == "" {
		shown = "what is empty"
	}
	return &Error{Op: "skill.ParseHTTP", Code: InvalidArgument, Subject: CleanText(s, 200), Message: shown + " " + why}
}

var label = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

func validHost(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return ok && err == nil && a.Is6() && !a.Is4In6() && a.Zone() == "" && a.String() == inner
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Is4() && a.String() == host
	}
	return validName(host)
}

func validName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	last := ""
	for l := range strings.SplitSeq(name, ".") {
		if !label.MatchString(l) {
			return false
		}
		last = l
	}
	// What ends in a number is read as an address by many: 127.1, 0x7f000001, 017700000001.
	_, err := strconv.ParseUint(last, 0, 64)
	return err != nil && strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// validWildcard accepts * and *.example.com.
func validWildcard(host string) bool {
	if host == "*" {
		return true
	}
	name, ok := strings.CutPrefix(host, "*.")
	return ok && validName(name)
}

// HTTPRule permits requests. The zero value permits none. As text it is
//
//	https://api.example.com:8443/v1/ GET,POST
//
// where port, path and methods may be left out: the scheme's port, all paths, and
// GET,HEAD. *.example.com stands for every name below example.com, * for every
// name; neither stands for the address of a machine.
type HTTPRule struct { //nolint:recvcheck // only what reads into a value needs its address
	HTTPOrigin

	Path    string   // "" for all; else this path and what is below it
	Methods []string // in the order of HTTPMethods
}

var rulePath, dotSegment = regexp.MustCompile(`^(/[A-Za-z0-9_~.-]*)+$`), regexp.MustCompile(`/\.\.?(/|$)`)

// ParseHTTPRule reads the text of a rule. The error is an *Error.
func ParseHTTPRule(s string) (HTTPRule, error) {
	fields := strings.Fields(s)
	if len(fields) == 0 || len(fields) > 2 || len(s) > 1024 {
		return HTTPRule{}, badHTTP(s, "is no rule: an address and methods, like https://api.example.com GET,POST")
	}
	o, path, err := parseOrigin(fields[0], true)
	if err != nil {
		return HTTPRule{}, err
	}
	r := HTTPRule{HTTPOrigin: o, Methods: []string{"GET", "HEAD"}}
	if path != "/" {
		r.Path = path
	}
	if r.Path != "" && (!rulePath.MatchString(r.Path) || dotSegment.MatchString(r.Path)) {
		return HTTPRule{}, badHTTP(s, "has a path that is not of letters, digits and - _ . ~ between slashes")
	}
	if len(fields) == 1 {
		return r, nil
	}
	given := strings.Split(fields[1], ",")
	r.Methods = nil
	for _, m := range HTTPMethods {
		if slices.Contains(given, m) {
			r.Methods = append(r.Methods, m)
		}
	}
	if len(r.Methods) != len(given) {
		return HTTPRule{}, badHTTP(s, "has methods that are not, once each and with commas between, of "+strings.Join(HTTPMethods[:], ","))
	}
	return r, nil
}

// String gives the text that ParseHTTPRule reads.
func (r HTTPRule) String() string {
	return r.HTTPOrigin.String() + r.Path + " " + strings.Join(r.Methods, ",")
}

// MarshalText writes the text of r.
func (r HTTPRule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (r *HTTPRule) UnmarshalText(b []byte) (err error) {
	*r, err = ParseHTTPRule(string(b))
	return err
}
