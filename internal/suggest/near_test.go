package suggest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []string
		want []string
	}{
		{"file_serch", []string{"echo", "file_search"}, []string{"file_search"}},
		{"search", []string{"echo", "file_search", "search_all"}, []string{"file_search", "search_all"}},
		{"ECHO", []string{"echo", "echo2"}, []string{"echo", "echo2"}},
		{"units.md", []string{"references/units.md", "notes.txt"}, []string{"references/units.md"}},
		{"n", []string{"op", "a", "values"}, nil}, // nothing in common
		{"text", []string{"t", "x"}, nil},
		{"b", []string{"a", "ab"}, []string{"ab"}},
		{"", []string{"a", ""}, nil},
		{strings.Repeat("z", 1000), []string{strings.Repeat("z", 1000)}, nil}, // not worth the time
		{"anything", nil, nil},
	} {
		if got := Names(c.name, c.all); !slices.Equal(got, c.want) {
			t.Errorf("%.40q of %q: %q, want %q", c.name, c.all, got, c.want)
		}
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("skill%d", i))
	}
	if got := Names("skill", many); len(got) != Most || got[0] != "skill0" {
		t.Errorf("%q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%s to %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
