package egress

import (
	"net/http"
	"slices"
	"strings"
)

// maxHeaders is how many headers a request may have.
const maxHeaders = 64

// ours are the headers that belong to the connection and not to the request: where
// it goes, where it ends, and who is between. In canonical form.
var ours = [...]string{
	"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Via", "Forwarded",
}

// header checks the headers of a guest and gives them in canonical form.
func (c *Client) header(given map[string]string) (http.Header, error) {
	if len(given) > maxHeaders {
		return nil, invalid("too many request headers; the limit is 64")
	}
	h := make(http.Header, len(given)+2)
	size := 0
	for name, value := range given {
		if size += len(name) + len(value) + 4; size > c.o.MaxHeader {
			return nil, tooLarge("the headers are too large; the limit is %d bytes", c.o.MaxHeader)
		}
		if !token(name) || !printable(value) {
			return nil, invalid("a header name or value has invalid characters")
		}
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(ours[:], name) || strings.HasPrefix(name, "Proxy-") {
			return nil, invalid("the header " + name[:min(len(name), 40)] + " is set by the host; leave it out")
		}
		if _, twice := h[name]; twice {
			return nil, invalid("the header " + name[:min(len(name), 40)] + " is given twice")
		}
		h[name] = []string{value}
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = []string{"openSkill"}
	}
	if h["Accept-Encoding"] == nil {
		h["Accept-Encoding"] = []string{"identity"} // nothing is decompressed here
	}
	return h, nil
}

// token is what a name may be: RFC 9110, section 5.6.2.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// printable is what a value may be: ASCII that can be seen, blanks and tabs within.
func printable(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return strings.TrimSpace(s) == s
}
