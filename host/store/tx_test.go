package store

import (
	"fmt"
	"testing"
)

// However large the items are, no transaction that removes them has more than its bytes,
// but for one item alone.
func TestPortions(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		sizes []int64
		want  string
	}{
		{nil, "[]"},
		{[]int64{0, 0, 0}, "[3]"},
		{[]int64{200 * mb}, "[1]"},
		{[]int64{1, 200 * mb, 1, 1}, "[1 1 2]"},
		{[]int64{8 * mb, 8 * mb, 8 * mb, 8*mb + 1, 1}, "[2 1 2]"},
		{[]int64{16 * mb, 0, 16 * mb}, "[2 1]"},
	} {
		var got []int
		for _, part := range Portions(c.sizes, func(n int64) int64 { return n }) {
			got = append(got, len(part))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d: parts of %v, want %s", c.sizes, got, c.want)
		}
	}
}

func TestIsUUID(t *testing.T) {
	for text, want := range map[string]bool{
		"019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f": true, "019AA5F0-2B1C-7D3E-9F41-5A6B7C8D9E0F": true,
		"": false, "019aa5f02b1c7d3e9f415a6b7c8d9e0f": false, "019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0g": false, "019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0": false,
		"{19aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f": false, "019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e\x10f": false, "019aa5f0\r2b1c-7d3e-9f41-5a6b7c8d9e0f": false,
	} {
		if got := IsUUID(text); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
