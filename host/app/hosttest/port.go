package hosttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"

	"openskill/internal/musttest"
)

// FreePort returns a loopback address with an unused port, for tests that must know the address
// before they start a host. The port is outside the range from which systems assign ports to other
// processes.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(22_000)))
		if ln, err := net.Listen("tcp", address); err == nil {
			musttest.Do(t, ln.Close())
			return address
		}
	}
	t.Fatal("no free port was found")
	return ""
}
