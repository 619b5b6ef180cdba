package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/admission/admissiontest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm/wasmtest"
)

// kept admits a module with a script's files beside it, and leaves it on the disk.
func kept(t *testing.T, a *Admission) *Admitted {
	t.Helper()
	b := wasmtest.New()
	write := b.Import("fd_write")
	b.Memory(1)
	b.Command(wasmtest.I32(1) + wasmtest.I32(0) + wasmtest.I32(0) + wasmtest.I32(8) + wasmtest.Call(write) + wasmtest.Drop)
	archive := admissiontest.Zip{Entries: []admissiontest.Entry{
		{Name: "z.txt", Body: []byte("last by name, first in the archive")},
		{Name: "docs/a.txt", Body: []byte("text")},
		{Name: "m.wasm", Body: b.Bytes()},
		{Name: "skill.yaml", Body: []byte("id: up\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: wasi\nentry: m.wasm\nlimits: {timeout_ms: 30000}\npermissions: {scratch: true}\n")},
	}}.Bytes()
	got := musttest.Get(a.Admit(t.Context(), Source{Archive: spool(t, archive), Owner: "acme"}, staging(t)))(t)
	t.Cleanup(func() { _ = Discard(got.Folder) })
	return got
}

// What is found in a version a week later is what was found when it came in.
func TestAgain(t *testing.T) {
	a := admission(t, options())
	got := kept(t, a)
	again := musttest.Get(a.Again(t.Context(), got.Skill))(t)
	first := *got.Report
	first.Files = slices.SortedFunc(slices.Values(first.Files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	again.Files = slices.SortedFunc(slices.Values(again.Files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	if diff := cmp.Diff(&first, again); diff != "" || len(again.Files) != 4 || !bytes.Contains(again.Module, []byte("fd_write")) || len(again.Warnings) == 0 {
		t.Errorf("%+v: %s", again, diff)
	}
}

// A host whose rules have changed says so, and a check that failed is no verdict.
func TestAgainUnderOtherRules(t *testing.T) {
	got := kept(t, admission(t, options()))
	o := options()
	var fails error = &skill.Error{Code: skill.ImportDenied, Message: "imports what is not there any more"}
	o.Checker = checkerFunc(func(context.Context, *skill.Spec) (json.RawMessage, error) { return nil, fails })
	o.Grant = nil
	a := admission(t, o)
	report := musttest.Get(a.Again(t.Context(), got.Skill))(t)
	want := []Refusal{{File: "m.wasm", Code: skill.ImportDenied, Message: "imports what is not there any more"}}
	if diff := cmp.Diff(want, report.Refused); diff != "" || report.Verdict != Refused || report.Gets.Permissions.Scratch || len(report.Files) != 4 {
		t.Errorf("%+v: %s", report, diff)
	}

	fails = &skill.Error{Code: skill.RateLimited, Message: "too many"}
	if _, err := a.Again(t.Context(), got.Skill); skill.CodeOf(err) != skill.RateLimited {
		t.Errorf("a host that is busy: %v", err)
	}
	fails = errors.New("a disk that is gone")
	if _, err := a.Again(t.Context(), got.Skill); skill.CodeOf(err) != skill.Internal || strings.Contains(err.(*skill.Error).Message, "gone") { //nolint:errorlint // as it is made
		t.Errorf("a host that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Again(ctx, got.Skill); skill.CodeOf(err) != skill.Cancelled {
		t.Errorf("a caller who left: %v", err)
	}
	missing := *got.Skill
	missing.Folder = filepath.Join(os.TempDir(), "there-is-no-such-folder-of-a-skill")
	if _, err := a.Again(t.Context(), &missing); skill.CodeOf(err) != skill.Internal {
		t.Errorf("files that are gone: %v", err)
	}
}
