package store_test

import (
	"testing"

	"openskill/host/store"
)

func TestUnencrypted(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for url, want := range map[string]bool{
		"postgres://db.example/x":                                    true, // prefer
		"postgres://db.example/x?sslmode=disable":                    true,
		"postgres://db.example/x?sslmode=allow":                      true,
		"postgres://db.example/x?sslmode=prefer":                     true,
		"postgres://10.0.0.7:5432/x?sslmode=disable":                 true,
		"postgres://127.0.0.1,db.example/x?sslmode=disable":          true,
		"postgres://db.example/x?sslmode=require":                    false,
		"postgres://db.example/x?sslmode=verify-full":                false,
		"postgres://127.0.0.1:5432/x?sslmode=disable":                false,
		"postgres://[::1]:5432/x?sslmode=disable":                    false,
		"postgres://localhost/x":                                     false,
		"postgres:///x?host=/var/run/postgresql":                     false,
		"postgres://db.example:port/x":                               false, // refused elsewhere
		"postgres://user:secret@db.example/x?sslmode=disable&port=1": true,
	} {
		if got := store.Unencrypted(url); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
}
