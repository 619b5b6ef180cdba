package storetest_test

import (
	"testing"

	"openskill/host/agent/conversations"
	"openskill/host/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Conversations(t, func(*testing.T) (store, another conversations.Store) {
		m := storetest.NewMemory()
		return m, m
	})
	storetest.Sessions(t, func(*testing.T) (store, another conversations.Sessions) {
		m := storetest.NewMemory()
		return m, m
	})
}
