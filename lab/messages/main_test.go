package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMessages prints the texts of the product, with -v, and notices if it stops finding them.
func TestMessages(t *testing.T) {
	t.Parallel()
	root, found := filepath.Join("..", ".."), 0
	for _, folder := range product {
		list, err := messages(root, folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			t.Log(m)
		}
		if folder == "sdk/client" && !slices.ContainsFunc(list, func(m string) bool { return strings.Contains(m, "client: invalid base URL") }) {
			t.Errorf("%s: the texts have no error of the client: %d texts", folder, len(list))
		}
		found += len(list)
	}
	if found < 1000 {
		t.Errorf("%d texts", found)
	}
}
