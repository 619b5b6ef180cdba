package store_test

import (
	"testing"
	"time"

	"openskill/host/audit"
	"openskill/host/store"
	"openskill/host/store/storetest"
)

var when = time.Date(2026, 11, 22, 12, 0, 0, 123456000, time.UTC)

func TestAudit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		storetest.Audit(t, func(t *testing.T) func() audit.Store {
			open := fresh(t)
			return func() audit.Store { return open().Audit() }
		})
	})
}
