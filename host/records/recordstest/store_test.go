package recordstest_test

import (
	"testing"

	"openskill/host/records"
	"openskill/host/records/recordstest"
	"openskill/host/store/storetest"
)

// The store in memory keeps what the databases keep.
func TestStore(t *testing.T) {
	storetest.Audit(t, func(*testing.T) func() records.Store {
		var s recordstest.Store
		return func() records.Store { return &s }
	})
}
