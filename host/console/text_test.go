package console

import "testing"

func TestCounted(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{{0, "0 scripts"}, {1, "1 script"}, {2, "2 scripts"}, {12345, "12 345 scripts"}} {
		if got := counted(c.n, "script"); got != c.want {
			t.Errorf("%d: %q, want %q", c.n, got, c.want)
		}
	}
}
