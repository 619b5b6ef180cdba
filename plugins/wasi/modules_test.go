package wasi

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// exits is a module that exits with a code below 64, always of the same length.
func exits(t testing.TB, code byte) []byte {
	t.Helper()
	m := []byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x08\x02\x60\x00\x00\x60\x01\x7f\x00" +
		"\x02\x24\x01\x16wasi_snapshot_preview1\x09proc_exit\x00\x01" +
		"\x03\x02\x01\x00" + "\x07\x0a\x01\x06_start\x00\x01" +
		"\x0a\x08\x01\x06\x00\x41?\x10\x00\x0b")
	m[len(m)-4] = code
	return m
}

func write(t testing.TB, call *skill.Call, module []byte, written time.Time) {
	t.Helper()
	path := filepath.Join(call.Folder, call.Entry)
	musttest.Do(t, errors.Join(os.WriteFile(path, module, 0o600), os.Chtimes(path, written, written)))
}

func wantExit(t testing.TB, r *Runner, call *skill.Call, code uint32) {
	t.Helper()
	if reply, err := runnertest.Do(t.Context(), r, call); err != nil || reply.Code != "" || reply.ExitCode != code {
		t.Errorf("%+v, %v; want exit code %d", reply, err, code)
	}
}

// The owner of a folder edits a module: the next call runs what is there now, also
// when size and time are the same as before.
func TestEditedModule(t *testing.T) {
	written := time.Unix(1_700_000_000, 0)
	now := written.Add(time.Second)
	r := New(engine(t), nil)
	r.modules.Now = func() time.Time { return now }
	r.calls.Folders.Fresh = -1 // every call looks
	defer r.Close()
	call := skillOf(t, exits(t, 1))
	call.Trust = skill.Trusted
	write(t, call, exits(t, 1), written)
	wantExit(t, r, call, 1)
	write(t, call, exits(t, 2), written) // within the grain of the clock
	wantExit(t, r, call, 2)

	now = written.Add(time.Hour)
	wantExit(t, r, call, 2)
	write(t, call, exits(t, 3), written.Add(time.Minute))
	wantExit(t, r, call, 3)
	write(t, call, []byte("not a module"), written.Add(2*time.Minute))
	if reply, err := runnertest.Do(t.Context(), r, call); err != nil || reply.Code != skill.InvalidModule {
		t.Errorf("%+v, %v; want INVALID_MODULE", reply, err)
	}
	write(t, call, exits(t, 4), written.Add(3*time.Minute))
	wantExit(t, r, call, 4)
}

// A folder that is replaced by a rename, as deployments do.
func TestReplacedFolder(t *testing.T) {
	r := New(engine(t), nil)
	r.calls.Folders.Fresh = -1 // every call looks
	defer r.Close()
	call := skillOf(t, exits(t, 1))
	call.Trust = skill.Trusted
	wantExit(t, r, call, 1)
	next := skillOf(t, exits(t, 2))
	musttest.Do(t, errors.Join(os.Rename(call.Folder, call.Folder+".old"), os.Rename(next.Folder, call.Folder)))
	wantExit(t, r, call, 2)
}

// U09, G02: what was admitted is what runs. A copy of the same bytes is no change.
func TestAdmittedModuleDoesNotChange(t *testing.T) {
	r := New(engine(t), nil)
	r.calls.Folders.Fresh = -1 // every call looks
	defer r.Close()
	call := skillOf(t, exits(t, 1))
	wantExit(t, r, call, 1)
	write(t, call, exits(t, 1), time.Now().Add(-time.Minute))
	wantExit(t, r, call, 1)
	write(t, call, exits(t, 2), time.Now().Add(-time.Second))
	if reply, err := runnertest.Do(t.Context(), r, call); reply != nil || skill.CodeOf(err) != skill.Conflict {
		t.Errorf("%+v, %v; want CONFLICT", reply, err)
	}
	call.Digest = "sha256:of the new version"
	wantExit(t, r, call, 2)
}

// large is m with 10,000 bytes of data.
func large(m []byte) []byte {
	at := bytes.Index(m, []byte("\x07\x0a\x01\x06_start")) // memory comes before exports
	m = slices.Insert(m, at, []byte("\x05\x03\x01\x00\x01")...)
	return append(append(m, "\x0b\x97\x4e\x01\x00\x41\x00\x0b\x90\x4e"...), make([]byte, 10_000)...)
}

// An engine with room for one module runs two in turn.
func TestModulesThatPushEachOtherOut(t *testing.T) {
	e := musttest.Get(wasm.Open(&wasm.Options{Resident: 15_000}))(t)
	defer e.Close()
	r := New(e, nil)
	defer r.Close()
	modules := [][]byte{large(exits(t, 1)), large(exits(t, 2))}
	one, two := skillOf(t, modules[0]), skillOf(t, modules[1])
	for range 20 {
		wantExit(t, r, one, 1)
		wantExit(t, r, two, 2)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		_, a := e.Lookup(wasm.Digest(modules[0]), nil)
		_, b := e.Lookup(wasm.Digest(modules[1]), nil)
		if !a || !b {
			break
		}
		if time.Now().After(end) {
			t.Fatal("both fit, so nothing was tested")
		}
	}
}

// A module that is larger than any that is accepted is refused by what it has, and no more
// of it is read.
func TestSizeCap(t *testing.T) {
	r := New(engine(t), nil)
	defer r.Close()
	call := skillOf(t, exits(t, 1))
	musttest.Do(t, os.Truncate(filepath.Join(call.Folder, call.Entry), 65<<20))
	if reply, err := runnertest.Do(t.Context(), r, call); err != nil || reply.Code != skill.ModuleTooComplex {
		t.Errorf("%+v, %v; want that it is too large", reply, err)
	}
}

func TestDataFolderMissing(t *testing.T) {
	r := New(engine(t), nil)
	r.calls.Folders.Fresh = -1 // every call looks
	defer r.Close()
	call := skillOf(t, exits(t, 1))
	call.Grants.Data = filepath.Join(t.TempDir(), "none")
	reply, err := runnertest.Do(t.Context(), r, call)
	var e *skill.Error
	if reply != nil || !errors.As(err, &e) || strings.Contains(e.Message, call.Grants.Data) {
		t.Errorf("%+v, %v; want an error without the path", reply, err)
	}
}

func TestReadyNamesWhatIsMissing(t *testing.T) {
	r := New(engine(t), nil)
	r.calls.Folders.Fresh = -1 // every call looks
	defer r.Close()
	var e *skill.Error
	if err := runnertest.Look(t.Context(), r, t.TempDir(), "echo.wasm"); !errors.As(err, &e) || e.Code != skill.NotFound ||
		!strings.HasPrefix(e.Message, "echo.wasm is not") || !strings.Contains(e.Message, "make skills") {
		t.Errorf("%v; want NOT_FOUND and how to build it", err)
	}
	if err := runnertest.Look(t.Context(), r, filepath.Join(t.TempDir(), "none"), "echo.wasm"); !errors.As(err, &e) {
		t.Errorf("no folder: %v", err)
	}
	if err := runnertest.Ready(t.Context(), r); err != nil {
		t.Errorf("without a skill: %v", err)
	}
}
