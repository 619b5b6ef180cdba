package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"openskill/sdk/skill"
)

// maxAddresses is how many addresses of a name are tried; all are checked.
const maxAddresses = 4

// resolve gives the addresses that a request may go to. An address that stands in
// the request was permitted by a rule that spells it out, so it may be any; those
// of a name must all be public, since a name means what its owner wants.
func (c *Client) resolve(ctx context.Context, o skill.HTTPOrigin) ([]netip.Addr, error) {
	if a, ok := o.Address(); ok {
		return []netip.Addr{a}, nil
	}
	private := func() error {
		return denied("%s is an address of a private or special network, which skills cannot reach; "+
			"to allow it, add the address to OPENSKILL_HTTP_ALLOW", o.Host)
	}
	if o.Host == "localhost" || strings.HasSuffix(o.Host, ".localhost") {
		return nil, private() // whatever a resolver knows of it (RFC 6761, section 6.3)
	}
	// The dot keeps search domains of the host out of it.
	found, err := c.o.Resolver.LookupNetIP(ctx, "ip", o.Host+".")
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || len(found) == 0 {
		return nil, &skill.Error{
			Op: "egress.Do", Code: skill.ToolInvocationError, Err: err,
			Message: skill.CleanText("the name "+o.Host+" cannot be resolved", skill.MaxMessage),
		}
	}
	for i, a := range found {
		if !Public(a) {
			return nil, private()
		}
		found[i] = a.Unmap()
	}
	return found[:min(len(found), maxAddresses)], nil
}

// dial is the default of Options.Dial.
func dial(ctx context.Context, network string, address netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{
		Timeout: 10 * time.Second,
		Control: func(_, to string, _ syscall.RawConn) error {
			got, err := netip.ParseAddrPort(to)
			if err != nil || got.Addr().Unmap() != address.Addr().Unmap() || got.Port() != address.Port() {
				return fmt.Errorf("egress: about to connect to another address than the one that was checked: %s", to)
			}
			return nil
		},
	}
	return d.DialContext(ctx, network, address.String())
}
