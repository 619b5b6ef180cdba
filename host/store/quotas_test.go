package store_test

import (
	"testing"

	"openskill/host/dispatch/quota"
	"openskill/host/store"
	"openskill/host/store/storetest"
)

func TestQuotas(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		storetest.Quotas(t, func(t *testing.T) (quota.Store, quota.Store) {
			t.Helper()
			open := fresh(t)
			return quota.NewStore(open()), quota.NewStore(open())
		})
	})
}
