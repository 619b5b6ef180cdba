package egress

import "net/netip"

// notPublic are the networks of IPv4 that are not the public internet, after the
// special-purpose registry of IANA (RFC 6890 and its updates), and one address that
// is public and serves a cloud's machines with what is theirs alone.
var notPublic = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // carriers' NAT; a cloud's metadata at 100.100.100.200
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // a cloud's metadata and health
	"169.254.0.0/16",   // link-local; metadata of most clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.31.196.0/24",  // AS112
	"192.52.193.0/24",  // AMT
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"192.175.48.0/24",  // AS112
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast
)

// publicV6 is all of IPv6 that is routed; what is within and is not public follows.
// Outside of it are ::1, IPv4 in IPv6, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48),
// fc00::/7, fe80::/10 and ff00::/8.
var (
	publicV6    = netip.MustParsePrefix("2000::/3")
	notPublicV6 = prefixes(
		"2001::/23",         // protocol assignments, with Teredo
		"2001:db8::/32",     // documentation
		"2002::/16",         // 6to4
		"2620:4f:8000::/48", // AS112
		"3fff::/20",         // documentation
	)
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Public reports whether an address is one of the public internet, which any rule
// with a name may lead to.
func Public(a netip.Addr) bool {
	if a.Zone() != "" {
		return false
	}
	if a = a.Unmap(); a.Is4() {
		return !within(a, notPublic)
	}
	return publicV6.Contains(a) && !within(a, notPublicV6)
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
