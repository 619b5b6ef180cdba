package postgres

import (
	"crypto/tls"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Unencrypted reports whether a connection to any server of the URL may be made without TLS
// over a network: by sslmode disable, allow or prefer, which is the default.
func Unencrypted(url string) bool {
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
