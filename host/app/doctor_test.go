package app

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
)

// TestDoctorSaysOfEverySkill has more skills than a page of the catalogue has.
func TestDoctorSaysOfEverySkill(t *testing.T) {
	t.Parallel()
	s := settings(t, map[string]string{"cli-dir": t.TempDir()})
	const scripts = 230
	for i := range scripts {
		musttest.Do(t, os.WriteFile(filepath.Join(s.CLIDir, fmt.Sprintf("a%03d.py", i)), nil, 0o600))
	}
	var x Examination
	x.skills(t.Context(), s, nil)
	if len(x.Skills) != scripts+3 || // and run_code
		x.Skills[len(x.Skills)-1].Name != "slow" {
		t.Errorf("of %d skills, want %d: %+v", len(x.Skills), scripts+2, x.Skills[max(len(x.Skills)-1, 0):])
	}
}
