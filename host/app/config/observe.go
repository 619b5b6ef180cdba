package config

import (
	"net"
	"strconv"
)

// observing settles where traces go, and who may look into the running host.
func (l *loader) observing(s *Settings) {
	switch s.Traces {
	case TracesOff, TracesFile, TracesOTLP:
	default:
		l.wrong(l.row("OPENSKILL_TRACES"), "is not known")
	}
	if s.AdminListen == "" {
		return
	}
	host, port, err := net.SplitHostPort(s.AdminListen)
	n, portErr := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || portErr != nil || strconv.FormatUint(n, 10) != port:
		l.wrong(l.row("OPENSKILL_ADMIN_LISTEN"), "is no address")
	case !loopback(host):
		l.wrong(l.row("OPENSKILL_ADMIN_LISTEN"), "is reachable from other machines, which must not look into a host")
	}
}
