package store

import (
	"crypto/tls"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Unencrypted reports whether what is sent to the database of this URL may cross a network
// without TLS: by sslmode disable, allow or prefer, which is the default. Files, Unix sockets
// and loopback cross none.
func Unencrypted(url string) bool {
	if scheme, _, ok := strings.Cut(url, ":"); !ok || scheme != "postgres" && scheme != "postgresql" {
		return false
	}
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return false // Open refuses it
	}
	plaintext := func(host string, t *tls.Config) bool {
		if t != nil || strings.HasPrefix(host, "/") || host == "localhost" {
			return false
		}
		ip := net.ParseIP(host)
		return ip == nil || !ip.IsLoopback()
	}
	if plaintext(c.Host, c.TLSConfig) {
		return true
	}
	for _, f := range c.Fallbacks {
		if plaintext(f.Host, f.TLSConfig) {
			return true
		}
	}
	return false
}
