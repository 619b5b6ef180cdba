package manifest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"openskill/host/internal/table"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// wide is a skill of a tenant with two schemas that are as large, compiled, as they may be.
func wide(t *testing.T, kept *Schemas, tenant string, number int) *Skill {
	t.Helper()
	o := &Options{Defaults: limits(10), Caps: limits(100), Schemas: kept}
	text := fmt.Sprintf("{title: t%d, type: object, anyOf: [{}%s]}", number, strings.Repeat(", {}", 1800))
	m, problems := parseManifest("f", []byte(strings.TrimRight(fmt.Sprintf(small, "wide"), "\n")+"\ninput_schema: "+text+"\noutput_schema: "+text+"\n"), skill.Community, known)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s := o.build(m, t.TempDir(), "", skill.Community)
	s.Owner = tenant
	return s
}

func inUse() int {
	runtime.GC()
	runtime.GC() // what was pooled, too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// 100 skills, which a tenant may have, took 4 GB in the host's own process: 41 MB each, for good.
func TestCompiledSchemasHaveABound(t *testing.T) {
	const most = 40 << 20
	kept := &Schemas{table.NewCache(most)}
	before := inUse()
	skills := make([]*Skill, 20)
	for i := range skills {
		skills[i] = wide(t, kept, "acme", i)
		if i%9 == 0 {
			if n := inUse() - before; n > 1<<20+i<<18 {
				t.Fatalf("%d skills that nobody calls take %d bytes", i+1, n)
			}
		}
	}
	for _, s := range skills {
		musttest.Do(t, s.CheckInput(map[string]any{"a": "b"}, MaxSteps))
		musttest.Do(t, s.CheckOutput(map[string]any{}))
	}
	if n := inUse() - before; n > most/2 { // one copy of each is made, of the four that there is room for
		t.Errorf("%d bytes are taken after all were called; %d are accepted", n, most/2)
	}
	runtime.KeepAlive(skills)
}

// A schema that was compiled is kept for its tenant, and others do not evict it.
func TestSchemasAreCompiledOnce(t *testing.T) {
	kept := &Schemas{table.NewCache(40 << 20)}
	s := wide(t, kept, "beta", 0)
	if !s.SlowToCheck() {
		t.Error("a large schema that is not compiled is not slow to check")
	}
	check := func(s *Skill) *Schema {
		t.Helper()
		musttest.Do(t, s.CheckInput(map[string]any{}, MaxSteps))
		return kept.has(s.Owner, s.input)
	}
	first := check(s)
	for i := range 8 {
		check(wide(t, kept, "acme", i))
	}
	if again := check(s); first == nil || again != first || s.SlowToCheck() {
		t.Error("the schema is compiled again after another tenant checked many")
	}
}
