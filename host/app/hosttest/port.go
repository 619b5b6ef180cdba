package hosttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"

	"openskill/internal/musttest"
)

// FreePort returns an address of loopback with a port that nobody uses, for tests that must know it
// before they start a host. It is no port that systems give out by themselves, which another
// process may get before the host listens.
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
