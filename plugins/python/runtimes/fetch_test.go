//go:build unix

package runtimes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// tool puts a program of that name, and nothing else, onto the PATH.
func tool(t *testing.T, dir, name, script string) {
	t.Helper()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700))
}

func TestFetch(t *testing.T) {
	for _, m := range []manager{pip, npm} {
		one := makeSmall(t, t.TempDir(), "one", m, 1000)
		bring := "cp " + one.archive + " ./small-1.0.whl\n"
		first, second := "python3", "pip"
		if m == npm {
			bring, first, second = "cp "+one.archive+" ./small-1.0.tgz\n", "npm", ""
		}
		for _, c := range []struct {
			name  string
			tools map[string]string
			want  string // of the message; "" for success
		}{
			{"no manager", nil, "not found: install"},
			{"it brings the archive", map[string]string{first: `echo "$@" >&2; ` + bring}, ""},
			{"it fails", map[string]string{first: "echo no route >&2; exit 1"}, "could not fetch small"},
			{"it brings nothing", map[string]string{first: "exit 0"}, "returned no archive"},
			{"it brings another", map[string]string{first: bring + "echo x >>$(echo small-1.0.*)"}, "pinned"},
			{"the second way", map[string]string{first: "exit 1", second: bring}, ""},
		} {
			if c.tools[""] != "" {
				continue
			}
			t.Run(string(m)+"/"+c.name, func(t *testing.T) {
				bin := t.TempDir()
				for name, script := range c.tools {
					tool(t, bin, name, "PATH=/bin:/usr/bin\n"+script)
				}
				t.Setenv("PATH", bin)
				t.Setenv("HOME", "")
				s := newStore(t.TempDir(), []*recipe{one.recipe}, fetchArchive)
				report, err := s.Install(t.Context(), "one", nil)
				if c.want == "" {
					if err != nil || report.State != Installed {
						t.Errorf("%+v, %v", report, err)
					}
					return
				}
				code := skill.ToolInvocationError
				if c.want == "pinned" {
					code = skill.InvalidArgument
				}
				wantCode(t, err, code, c.want)
				if strings.Contains(c.name, "fails") && !strings.Contains(err.Error(), "no route") {
					t.Errorf("the manager's words are not in %v", err)
				}
			})
		}
	}
}
