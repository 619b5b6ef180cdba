package sandbox

import (
	"fmt"
	"testing"
)

// What is known of modules is bounded: beyond that all is forgotten, and read again.
func TestKnownModulesAreBounded(t *testing.T) {
	t.Parallel()
	var m Modules
	for i := range maxKnown {
		m.note(moduleKey{folder: fmt.Sprint(i)}, known{})
	}
	if len(m.known) != maxKnown {
		t.Errorf("%d modules are known", len(m.known))
	}
	m.note(moduleKey{folder: "one more"}, known{file: "m"})
	if len(m.known) != 1 || m.known[moduleKey{folder: "one more"}].file != "m" {
		t.Errorf("%d modules are known", len(m.known))
	}
}
