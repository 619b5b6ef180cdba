package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// laid are the files that go into the copy of wazero.
//
//go:embed all:_wazero
var laid embed.FS

const (
	wazero  = "github.com/tetratelabs/wazero"
	version = "v1.12.0" // whose compilers the checker knows
	wazevo  = "internal/engine/wazevo/"
)

// edit is a change of one file of wazero. Old must be there exactly once.
type edit struct{ file, old, new string }

// edits are the calls of the checker.
var edits = []edit{
	{wazevo + "backend/isa/amd64/machine.go", "\tm.regAlloc.DoAllocation(&rf)\n", "\tm.regAlloc.DoAllocation(&rf)\n\tm.checkAllocation()\n"},
	{wazevo + "backend/isa/arm64/machine.go", "\tm.regAlloc.DoAllocation(&m.regAllocFn)\n", "\tm.regAlloc.DoAllocation(&m.regAllocFn)\n\tm.checkAllocation()\n"},
	{wazevo + "engine.go", "\tbe.Init()\n\n\t// Lower Wasm to SSA.\n", "\tbe.Init()\n\tregcheck.Begin(localFunctionIndex)\n"},
	{wazevo + "engine.go", "\t\"" + wazero + "/" + wazevo + "frontend\"\n", "\t\"" + wazero + "/" + wazevo + "backend/regcheck\"\n\t\"" + wazero + "/" + wazevo + "frontend\"\n"},
}

// forArm64 has an amd64 program compile for arm64: what it compiles is checked, and never run.
var forArm64 = []edit{
	{wazevo + "isa_amd64.go", "return amd64.NewBackend()", "return arm64.NewBackend()"},
	{wazevo + "isa_amd64.go", "/isa/amd64\"\n", "/isa/amd64\"\n\t\"" + wazero + "/" + wazevo + "backend/isa/arm64\"\n"},
}

// notThere are the instructions that the edited compiler alone has, as the checker names them.
var notThere = []edit{
	{wazevo + "backend/isa/amd64/regcheck_effects.go", "exitSequence, exitIf, charge, ", "exitSequence, "},
	{wazevo + "backend/isa/amd64/regcheck.go", "if m.fuelInRegister {\n\t\tf.Info, f.Outside = fuelRegInfo, regalloc.NewRegSet(rsp, rbp, fuelVReg.RealReg())\n\t}\n", ""},
}

// asOnArm64 are what the frontend of the edited compiler does for amd64 alone.
var asOnArm64 = []edit{
	{wazevo + "frontend/lower.go", "comparesWithMemory = runtime.GOARCH == \"amd64\"", "comparesWithMemory = runtime.GOARCH == \"arm64\""},
	{wazevo + "frontend/lower.go", "addsInMemory       = runtime.GOARCH == \"amd64\"", "addsInMemory       = runtime.GOARCH == \"arm64\""},
	{wazevo + "frontend/refuel.go", "fuelRegister = runtime.GOARCH == \"amd64\"", "fuelRegister = runtime.GOARCH == \"arm64\""},
}

// withFew are the edits that leave the allocator only so many registers of each kind to choose
// from, the last ones, which no convention of calls uses, and have it take the worst of them.
func withFew(few string) []edit {
	const file, find, free = wazevo + "backend/regalloc/regalloc.go", "\tr = RealRegInvalid\n\t// First, check if", "func (s *state[I, B, F]) findAllocatable("
	return []edit{
		{file, find, "\tallocatable, preferred = fewOf(allocatable, preferred)\n" + find},
		{file, free, strings.ReplaceAll(`func fewOf(all []RealReg, preferred RealReg) ([]RealReg, RealReg) {
	all = all[len(all)-N:]
	for _, r := range all {
		if r == preferred {
			return all, preferred
		}
	}
	return all, RealRegInvalid
}

`, "N", few) + free},
		// What is used soonest goes, and not what is used last.
		{file, "(lastUseAt != -1 && last > lastUseAt)", "(lastUseAt != -1 && last < lastUseAt)"},
	}
}

// build makes the program that compiles and checks, with what it needs in dir. few is how many
// registers of a kind it has, "" all. It has the edits of the project's own wazero, unless asIs.
func build(ctx context.Context, dir, arch, few string, asIs bool, program string) error {
	module, err := source(ctx, asIs)
	if err != nil {
		return err
	}
	if module.Version != version || module.Dir == "" {
		return fmt.Errorf("the checker is for wazero %s and the project has %s; look at what changed there, and at _wazero", version, module.Version)
	}
	changes := slices.Clone(edits)
	if asIs {
		changes = append(changes, notThere...)
	}
	switch arch {
	case "amd64":
	case "arm64":
		changes = append(changes, forArm64...)
		if !asIs {
			changes = append(changes, asOnArm64...)
		}
	default:
		return fmt.Errorf("architecture %q has no compiler; use amd64 or arm64", arch)
	}
	if few != "" {
		if n, err := strconv.Atoi(few); err != nil || n < 2 || n > 14 {
			return fmt.Errorf("-few %q: want 2 to 14 registers", few)
		}
		changes = append(changes, withFew(few)...)
	}
	copied := filepath.Join(dir, "wazero")
	if err := copyModule(module.Dir, copied); err != nil {
		return err
	}
	if err := lay(copied); err != nil {
		return err
	}
	for _, e := range changes {
		if err := e.apply(copied); err != nil {
			return err
		}
	}
	modfile, err := replaced(ctx, dir, copied)
	if err != nil {
		return err
	}
	_, err = command(ctx, "build", "-trimpath", "-modfile="+modfile, "-ldflags=-X openskill/wasm.target="+arch, "-o", program, "openskill/lab/regcheck/compile")
	return err
}

type module struct{ Version, Dir string }

// source finds wazero: with its edits, as go.work has it, or as it is.
func source(ctx context.Context, asIs bool) (*module, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-json", wazero)
	if asIs {
		cmd.Env = append(os.Environ(), "GOWORK=off")
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var m module // whose folder is that of its replacement
	return &m, json.Unmarshal(out, &m)
}

// command runs the go command. It builds for amd64, where both compilers can be looked at.
func command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return out, nil
}

// copyModule copies the sources of a module, without its tests and what they read.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && (name == "testdata" || name == "integration_test" || name == "site" || name == "examples"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".s") && name != "go.mod":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	})
}

// lay puts the checker into the copy: a package of its own, and a part for each backend.
func lay(copied string) error {
	places := map[string]string{"regcheck": "backend/regcheck", "amd64": "backend/isa/amd64", "arm64": "backend/isa/arm64"}
	for from, to := range places {
		files, err := fs.Glob(laid, "_wazero/"+from+"/*.go")
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no files of _wazero/%s: %w", from, err)
		}
		folder := filepath.Join(copied, wazevo, to)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		for _, f := range files {
			b, err := laid.ReadFile(f)
			if err != nil {
				return err
			}
			// A part for one processor is built on every one.
			name := strings.NewReplacer("_amd64", "", "_arm64", "").Replace(filepath.Base(f))
			if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *edit) apply(copied string) error {
	path := filepath.Join(copied, e.file)
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := bytes.Count(b, []byte(e.old)); n != 1 {
		return fmt.Errorf("%s has %q %d times and not once: look at what changed in wazero", e.file, e.old, n)
	}
	return os.WriteFile(path, bytes.Replace(b, []byte(e.old), []byte(e.new), 1), 0o600)
}

// replaced writes a go.mod beside the project's own, by which wazero is the copy.
func replaced(ctx context.Context, dir, copied string) (string, error) {
	out, err := command(ctx, "env", "GOMOD")
	if err != nil {
		return "", err
	}
	gomod := strings.TrimSpace(string(out))
	if gomod == "" || gomod == os.DevNull {
		return "", errors.New("run it in a folder of the project")
	}
	b, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(strings.TrimSuffix(gomod, ".mod") + ".sum")
	if err != nil {
		return "", err
	}
	b = fmt.Appendf(b, "\nreplace %s => %s\n", wazero, copied)
	modfile := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil {
		return "", err
	}
	return modfile, os.WriteFile(modfile, b, 0o600)
}
