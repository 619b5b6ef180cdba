package chat

import (
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// People who watch see the beginning of what a call gave: valid text, and nothing of a
// call that failed.
func TestGlance(t *testing.T) {
	t.Parallel()
	long := `{"a": "` + strings.Repeat("中", 200) + `"}`
	for data, want := range map[string]string{"": "", `{"a": 1}`: `{"a": 1}`, long: long[:mostGlance-(mostGlance-len(`{"a": "`))%len("中")]} {
		if got := glance(&skill.Result{Success: true, Data: []byte(data)}); got != want {
			t.Errorf("%.20q: %q, want %q", data, got, want)
		}
	}
	if got := glance(&skill.Result{Data: []byte("{}")}); got != "" {
		t.Errorf("of a failure: %q", got)
	}
}
