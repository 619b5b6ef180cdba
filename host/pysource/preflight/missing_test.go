package preflight_test

import (
	"os"
	"strings"
	"testing"

	"openskill/host/pysource/preflight"
	"openskill/internal/musttest"
)

// TestNamesWhatTheRuntimeLacks: each name of the table is told of a script that uses it. That
// the table is what the runtime lacks is held by lab/stdnames.
func TestNamesWhatTheRuntimeLacks(t *testing.T) {
	o := options(t)
	table := musttest.Get(os.ReadFile("missing.txt"))(t)
	count := 0
	for line := range strings.Lines(string(table)) {
		module, names, _ := strings.Cut(strings.TrimSpace(line), ":")
		if strings.HasPrefix(module, "#") {
			continue
		}
		fields := strings.Fields(names)
		text := "import " + module + "\n"
		for _, n := range fields {
			text += module + "." + n + "()\n"
		}
		r := musttest.Get(preflight.Check(t.Context(), folder(t, map[string]string{"s.py": text}), o))(t)
		told := map[int]bool{} // lines
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Severity == preflight.CannotRun {
				told[f.Line] = true
			}
		}
		if len(fields) == 0 && !told[1] {
			t.Errorf("import %s: nothing was found", module)
		}
		for i, n := range fields {
			if count++; !told[i+2] {
				t.Errorf("%s.%s: not found", module, n)
			}
		}
	}
	if count < 500 {
		t.Errorf("%d names", count)
	}
}
