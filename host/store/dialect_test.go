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
		for _, part := range portions(c.sizes, func(n int64) int64 { return n }) {
			got = append(got, len(part))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d: parts of %v, want %s", c.sizes, got, c.want)
		}
	}
}

func TestMarked(t *testing.T) {
	for statement, want := range map[string]string{"SELECT 1": "SELECT 1", "(?, ?) = ?": "($1, $2) = $3"} {
		if got := (&DB{kind: Postgres}).marked(statement); got != want {
			t.Errorf("%s: %s", statement, got)
		}
		if got := (&DB{kind: SQLite}).marked(statement); got != statement {
			t.Errorf("%s: %s", statement, got)
		}
	}
}
