package store_test

import (
	"testing"

	"openskill/host/dispatch/quota"
	"openskill/host/dispatch/quota/quotatest"
	"openskill/host/store"
	"openskill/host/store/storetest"
)

func TestQuotas(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		storetest.Quotas(t, func(*testing.T) (quota.Store, quota.Store) {
			s := &quotatest.Store{}
			return s, s
		})
	})
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		storetest.Quotas(t, func(t *testing.T) (quota.Store, quota.Store) {
			t.Helper()
			open := fresh(t)
			return open().Quotas(), open().Quotas()
		})
	})
}
