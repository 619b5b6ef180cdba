package api

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// addressOf is the address of a connection's other side; the zero value where it has none.
func addressOf(a net.Addr) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	to, _ := netip.ParseAddrPort(a.String()) // the zero value is the answer
	return to.Addr().Unmap().WithZone("")
}

// network is what is counted of an address: of IPv6, the network that one site has.
func network(a netip.Addr) string {
	if a.Is6() {
		p, _ := a.Prefix(64) // 64 fits
		return p.String()
	}
	return a.String()
}

// wideNetwork is the network that a [network] is a part of, and its addresses share: one
// attacker has many of IPv6.
func wideNetwork(of string) string {
	text, _, _ := strings.Cut(of, "/")
	a, err := netip.ParseAddr(text)
	if err != nil {
		return "wide " + of
	}
	bits := 16
	if a.Is6() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // it fits
	return p.String()
}

func (s *Server) isProxy(a netip.Addr) bool {
	return slices.ContainsFunc(s.opt.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// holderOf is what connections without a known caller are counted by. Those of a trusted
// proxy are of many clients, and not counted by its address.
func (s *Server) holderOf(remote net.Addr) string {
	a := addressOf(remote)
	if !a.IsValid() || s.isProxy(a) {
		return ""
	}
	return network(a)
}

// clientAddress is where a request comes from: the other side of its connection, or, if that
// is a trusted proxy, what the proxies say. They append to the headers that clients send, so
// these are read from the end, up to the first address that is not a proxy's. Headers that
// are malformed, or contradict each other, say nothing: the proxy is where it comes from.
func (s *Server) clientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	peer := addressOf(ctx.RemoteAddr())
	if !s.isProxy(peer) {
		return peer
	}
	var found netip.Addr
	for name, parse := range map[string]func(string) netip.Addr{"X-Forwarded-For": bareAddress, "Forwarded": forwardedFor} {
		values := ctx.Request.Header.PeekAll(name)
		if len(values) == 0 {
			continue
		}
		lines := make([]string, len(values))
		for i, v := range values {
			lines[i] = string(v)
		}
		a := s.nearest(strings.Split(strings.Join(lines, ","), ","), parse)
		if !a.IsValid() || found.IsValid() && a != found {
			return peer
		}
		found = a
	}
	if !found.IsValid() {
		return peer
	}
	return found
}

// nearest is the last address of a list that is not a proxy's, or the first one where all
// are; the zero value if one on the way there is none.
func (s *Server) nearest(hops []string, parse func(string) netip.Addr) (a netip.Addr) {
	for i := len(hops) - 1; i >= 0; i-- {
		if a = parse(strings.TrimSpace(hops[i])); !a.IsValid() || !s.isProxy(a) {
			return a
		}
	}
	return a
}

// forwardedFor reads the node of one element of Forwarded (RFC 7239): for=192.0.2.1;proto=https.
func forwardedFor(element string) (a netip.Addr) {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "for") {
			continue
		}
		if a.IsValid() {
			return netip.Addr{} // twice
		}
		if a = bareAddress(strings.Trim(strings.TrimSpace(value), `"`)); !a.IsValid() {
			return a
		}
	}
	return a
}

// bareAddress reads an address, with a port or without, in brackets or without.
func bareAddress(text string) netip.Addr {
	if to, err := netip.ParseAddrPort(text); err == nil {
		return to.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}
