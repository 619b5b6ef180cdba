package mcp

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// sameSite keeps web pages of others out: those that say so themselves, and those
// whose owner made a name of theirs point to this machine, which then send that name
// as the host.
func (s *Server) sameSite(r *http.Request) error {
	if !s.knownHost(r.Host) {
		return &skill.Error{
			Op: "mcpserver.host", Code: skill.Forbidden, Subject: skill.CleanText(r.Host, 80),
			Message: fmt.Sprintf("unknown host name %q: use an IP address, localhost, or set OPENSKILL_HTTP_BASE_URL or OPENSKILL_HTTP_ORIGINS", skill.CleanText(r.Host, 80)),
		}
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
			return foreignOrigin("")
		}
		return nil
	}
	if len(origins) > 1 {
		return foreignOrigin("more than one")
	}
	if slices.Contains(s.opt.Origins, origins[0]) {
		return nil
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) || !isNumeric(u.Host) {
		return foreignOrigin(origins[0])
	}
	return nil
}

func foreignOrigin(origin string) error {
	return &skill.Error{
		Op: "mcpserver.origin", Code: skill.Forbidden, Subject: skill.CleanText(origin, 80),
		Message: "cross-origin request refused: add the origin to OPENSKILL_HTTP_BASE_URL or OPENSKILL_HTTP_ORIGINS",
	}
}

// knownHost reports whether host is one by which only this machine can be meant.
func (s *Server) knownHost(host string) bool {
	if isNumeric(host) {
		return true
	}
	for _, origin := range s.opt.Origins {
		if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Host, host) {
			return true
		}
	}
	return false
}

// isNumeric reports whether a host, with or without a port, is localhost or an
// address: what no name server has a say in.
func isNumeric(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if strings.EqualFold(name, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
