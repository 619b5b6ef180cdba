package audittest_test

import (
	"testing"

	"openskill/host/audit"
	"openskill/host/audit/audittest"
	"openskill/host/store/storetest"
)

// The store in memory keeps what the databases keep.
func TestStore(t *testing.T) {
	storetest.Audit(t, func(*testing.T) func() audit.Store {
		var s audittest.Store
		return func() audit.Store { return &s }
	})
}
