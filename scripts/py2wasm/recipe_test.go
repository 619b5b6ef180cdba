package py2wasm_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/scripts/py2wasm"
)

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "recipe")
	if err := py2wasm.Write(dir, "pass"); err != nil {
		t.Fatal(err)
	}
	setup := filepath.Join(dir, "setup.sh")
	before, err := os.Stat(setup)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "patches.py")
	if err := os.WriteFile(damaged, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := py2wasm.Write(dir, "pass"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(damaged); err != nil || len(b) < 1000 {
		t.Errorf("a damaged file was not written anew: %d bytes, %v", len(b), err)
	}
	if after, err := os.Stat(setup); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file that was right was written again, %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// setUp runs setup.sh with nothing on the PATH but a python3 that tells a version,
// if there is one.
func setUp(t *testing.T, version string) (code int, said string) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not here")
	}
	bin, recipe := t.TempDir(), t.TempDir()
	if err := py2wasm.Write(recipe, "pass"); err != nil {
		t.Fatal(err)
	}
	if version != "" {
		if err := os.WriteFile(filepath.Join(bin, "python3"), []byte("#!"+sh+"\necho "+version+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(sh, filepath.Join(recipe, "setup.sh"), filepath.Join(t.TempDir(), "toolchain"))
	cmd.Env = []string{"PATH=" + bin}
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// Without Python 3.11 one line says so, and which there is.
func TestPythonIsMissing(t *testing.T) {
	for _, c := range []struct{ version, want string }{
		{"", "this machine has no Python: nothing was built"},
		{"3.12", "this machine has 3.12: nothing was built"},
		{"3.10", "this machine has 3.10: nothing was built"},
	} {
		code, said := setUp(t, c.version)
		if code != py2wasm.Missing || strings.Count(said, "\n") != 1 || !strings.Contains(said, c.want) {
			t.Errorf("python3 %q: exit code %d, %q; want %d and one line with %q", c.version, code, said, py2wasm.Missing, c.want)
		}
	}
}

// patched applies the patches to a tree and gives what they said.
func patched(t *testing.T, tree string) (string, error) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here")
	}
	cmd := exec.Command(python, "-B", "-c", "import sys, patches; patches.apply(sys.argv[1])", tree)
	cmd.Dir = "recipe"
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A source that is not the one that the patches were written for is left alone, and
// said to be another one.
func TestPatchesRefuseAnotherSource(t *testing.T) {
	const (
		values   = `"version": trust_constant, "hexversion": trust_constant, "platform": trust_constant, "maxsize": trust_constant, "builtin_module_names": trust_constant`
		patchelf = `if isStandaloneMode() and isLinux() and getExecutablePath("patchelf") is None:`
		copies   = "        detectUsedDLLs(\n        copyDllsUsed(\n"
		library  = "        _stdlib_modules_names = tuple(sorted(_stdlib_modules_names))\n"
		star     = "if star_pos == len(pattern.patterns):\nslice_value = slice(count)\n    assert len(pattern.keys) == len(pattern.patterns), ast.dump(pattern)\n"
		groups   = "def buildTryStarNode(provider, node, source_ref):\n"
		getter   = "static PyObject *look(PyObject *self) {\n    return self;\n}\nx = {(getter)look};\n"
	)
	for _, c := range []struct{ name, values, patchelf, copies, c, want string }{
		{"a value less", values[30:], patchelf, copies, "", "HardImportRegistry.py: "},
		{"no test for patchelf", values, "", copies, "", "Options.py: "},
		{"two tests for patchelf", values, patchelf + patchelf, copies, "", "2 times, and not 1"},
		{"no copying", values, patchelf, "", "", "MainControl.py: "},
		{"another number of functions", values, patchelf, copies, getter, "adapters were made in"},
		{"a function that is not defined", values, patchelf, copies, "x = {(getter)look};\n", "look is cast to getter and not defined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := t.TempDir()
			files := map[string]string{
				"HardImportRegistry.py": c.values, "Options.py": c.patchelf, "MainControl.py": c.copies,
				"freezer/ImportDetection.py":           library,
				"tree/Building.py":                     groups,
				"tree/ReformulationMatchStatements.py": star,
				"build/static_src/CompiledCellType.c":  c.c,
			}
			for name, text := range files {
				path := filepath.Join(tree, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			said, err := patched(t, tree)
			if err == nil || !strings.Contains(said, "Mismatch") || !strings.Contains(said, c.want) {
				t.Errorf("%v, %q; want a Mismatch with %q", err, said, c.want)
			}
			for name, text := range files {
				if b, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(name))); err != nil || string(b) != text {
					t.Errorf("%s was changed: %q, %v", name, b, err)
				}
			}
		})
	}
}
