package store_test

import (
	"testing"

	"openskill/host/executions"
	"openskill/host/executions/executionstest"
	"openskill/host/store"
	"openskill/host/store/storetest"
)

func TestResults(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		storetest.Results(t, func(*testing.T) (executions.Results, executions.Results) {
			s := &executionstest.Results{}
			return s, s
		})
	})
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		storetest.Results(t, func(t *testing.T) (executions.Results, executions.Results) {
			t.Helper()
			open := fresh(t)
			return open().Results(), open().Results()
		})
	})
}
