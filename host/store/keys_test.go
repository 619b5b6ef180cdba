package store_test

import (
	"testing"

	"openskill/host/auth"
	"openskill/host/auth/authtest"
	"openskill/host/store"
	"openskill/host/store/storetest"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		storetest.Keys(t, func(*testing.T) (auth.KeyStore, auth.KeyStore) {
			s := &authtest.Keys{}
			return s, s
		})
	})
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		storetest.Keys(t, func(t *testing.T) (auth.KeyStore, auth.KeyStore) {
			t.Helper()
			open := fresh(t)
			return open().Keys(), open().Keys()
		})
	})
}
