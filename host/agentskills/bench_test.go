package agentskills

import (
	"fmt"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// thousand makes 1,000 folders of the shape of unit-converter.
func thousand(b *testing.B) string {
	b.Helper()
	root := b.TempDir()
	body := strings.Repeat("Instructions of some length, line by line.\n", 60)
	for i := range 1000 {
		name := fmt.Sprintf("skill-%04d", i)
		write(b, root, map[string]string{
			name + "/SKILL.md":            md(name, "Does what number "+name+" does. Use when asked for it.") + body,
			name + "/references/table.md": body, name + "/scripts/run.py": body,
		})
	}
	return root
}

// BenchmarkDiscover finds 1,000 folders for the first time.
func BenchmarkDiscover(b *testing.B) {
	root := thousand(b)
	for b.Loop() {
		src := source(b, nil, root)
		if n := len(skillsOf(b, src)); n != 1000 {
			b.Fatal(n)
		}
	}
}

// BenchmarkRescan looks at 1,000 folders in which nothing has changed.
func BenchmarkRescan(b *testing.B) {
	src := source(b, nil, thousand(b))
	settled(b, src)
	for b.Loop() {
		if n := len(skillsOf(b, src)); n != 1000 {
			b.Fatal(n)
		}
	}
}

// BenchmarkList is what a caller pays for the list of 1,000 skills between two looks.
func BenchmarkList(b *testing.B) {
	p, err := New(source(b, nil, thousand(b)), &Options{Log: quiet, Every: 1 << 60})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if list, err := p.List(b.Context(), skill.Local()); err != nil || len(list) != 1000 {
			b.Fatal(len(list), err)
		}
	}
}

// BenchmarkTarget is what a run of a script pays to find it and see that its folder is
// as it was.
func BenchmarkTarget(b *testing.B) {
	src := source(b, nil, converter)
	settled(b, src)
	p, err := New(src, &Options{Log: quiet, Every: 1 << 60})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Target(b.Context(), skill.Local(), "unit-converter", "convert.py"); err != nil {
			b.Fatal(err)
		}
	}
}
