package hostile_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"openskill/examples/hostile"
	"openskill/host/manifest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Every case has a name, a number and an id of its own, and says what it is about.
func TestCasesAreWhole(t *testing.T) {
	names, ids := map[string]bool{}, map[skill.ID]string{}
	for _, c := range hostile.All() {
		if names[c.Name] || c.Name == "" {
			t.Errorf("%q: the name is not its own", c.Name)
		}
		names[c.Name] = true
		if other := ids[c.ID()]; other != "" {
			t.Errorf("%q and %q have the id %s", c.Name, other, c.ID())
		}
		ids[c.ID()] = c.Name
		if _, err := skill.ParseID(string(c.ID())); err != nil {
			t.Errorf("%q: %v", c.Name, err)
		}
		if c.Promise < hostile.Contained || c.Promise > hostile.Real || c.Limit == "" || c.Upload == nil {
			t.Errorf("%q: promise %d, limit %q, or no upload", c.Name, c.Promise, c.Limit)
		}
		for _, code := range append(append([]skill.Code{}, c.Refused...), c.Ends...) {
			if code != "" && !code.Known() {
				t.Errorf("%q: no code %s", c.Name, code)
			}
		}
	}
}

// Each public number of the list of threats is here or in the attacks of the self-test.
func TestEveryNumberIsThere(t *testing.T) {
	all := hostile.All()
	for _, number := range strings.Fields("W01 W02 W04 W05 W06 W07 W08 W09 W10 W11 W12 W13 W14 W15 " +
		"E01 E02 E03 E05 E06 E07 E09 E10 E11 E12 E13 E14 E15 E16 E17 E18 E19 E20 E21 E22 E23 E24 E25 X02 X03 X05 " +
		"F01 F02 F03 F04 F05 F06 F07 N01 P02") {
		if !slices.ContainsFunc(all, func(c hostile.Case) bool {
			return strings.HasPrefix(c.Name, number+" ") || strings.HasPrefix(c.Name, number+"-")
		}) {
			t.Errorf("no case %s", number)
		}
	}
}

// Manifests of cases that are to be admitted have no problem; modules of those get the
// checker's verdict that the case says.
func TestUploadsAreWhatTheySay(t *testing.T) {
	for _, c := range hostile.All() {
		u := c.Upload()
		dir := t.TempDir()
		switch {
		case u.Module != nil:
			write(t, dir, "skill.yaml", u.Manifest)
			write(t, dir, "main.wasm", u.Module)
		case c.Refused == nil:
			unpack(t, dir, u.Archive)
		default:
			continue // admission judges it, in its own tests
		}
		if problems, _ := manifest.Validate(dir, manifest.Options{}); len(problems) > 0 {
			t.Errorf("%s: %v", c.Name, problems)
		}
		if u.Module == nil {
			continue
		}
		report, _ := wasm.Check(u.Module, nil)
		var got skill.Code
		if report.Error != nil {
			got = skill.Code(report.Error.Code)
		}
		want := append([]skill.Code{}, c.Refused...)
		if c.Refused == nil || c.Ends != nil {
			want = append(want, "")
		}
		if !contains(want, got) && !contains(c.Ends, got) {
			t.Errorf("%s: %q (%+v), want %q", c.Name, got, report.Error, want)
		}
	}
}

func contains(list []skill.Code, c skill.Code) bool {
	for _, x := range list {
		if x == c {
			return true
		}
	}
	return false
}

func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, dir string, archive []byte) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, f.Name, b)
	}
}
