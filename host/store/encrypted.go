package store

import (
	"strings"

	"openskill/host/store/postgres"
)

// Unencrypted reports whether what is sent to the database of this URL may cross a network
// without TLS. Files, Unix sockets and loopback cross none.
func Unencrypted(url string) bool {
	scheme, _, ok := strings.Cut(url, ":")
	return ok && (scheme == "postgres" || scheme == "postgresql") && postgres.Unencrypted(url)
}
