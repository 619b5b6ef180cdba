// This file has what tests of outgoing requests put in the place of the
// network: names that mean what a test says, and connections that all end at one
// server on this machine.

package egress_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// Resolver answers from a table. It is safe for concurrent use.
type Resolver struct {
	// Names has the answers for each name, without the dot at its end: the first for
	// the first question, and so on; the last one stays. "*" is for all other names.
	Names map[string][][]netip.Addr

	mu    sync.Mutex
	asked map[string]int
}

// Always is a resolver with one answer for every name.
func Always(addresses ...string) *Resolver {
	return &Resolver{Names: map[string][][]netip.Addr{"*": {Addresses(addresses...)}}}
}

// Addresses parses addresses, and panics where one is none.
func Addresses(texts ...string) []netip.Addr {
	out := make([]netip.Addr, len(texts))
	for i, s := range texts {
		out[i] = netip.MustParseAddr(s)
	}
	return out
}

// LookupNetIP implements egress.Resolver.
func (r *Resolver) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(host, ".")
	r.mu.Lock()
	defer r.mu.Unlock()
	answers, ok := r.Names[name]
	if !ok {
		answers, ok = r.Names["*"]
	}
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	n := r.asked[name]
	r.asked[name]++
	if !ok || len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return append([]netip.Addr(nil), answers[min(n, len(answers)-1)]...), nil
}

// Asked is how often a name was asked for.
func (r *Resolver) Asked(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[name]
}

// Dialer leads every connection to one address of this machine. It is safe for
// concurrent use.
type Dialer struct {
	To string // host:port

	mu     sync.Mutex
	dialed []netip.AddrPort
}

// Dial is for Options.Dial of package egress.
func (d *Dialer) Dial(ctx context.Context, network string, address netip.AddrPort) (net.Conn, error) {
	d.mu.Lock()
	d.dialed = append(d.dialed, address)
	d.mu.Unlock()
	var n net.Dialer
	return n.DialContext(ctx, network, d.To)
}

// Dialed is where connections were meant to go.
func (d *Dialer) Dialed() []netip.AddrPort {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]netip.AddrPort(nil), d.dialed...)
}
