package packages

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"openskill/sdk/skill"
)

//go:embed download.py
var downloader string

// Had is a Python package that a runtime has.
type Had struct {
	Name    string // in its normal form
	Version string
	Pure    bool // the default runtime has it
}

// environment are the markers of the sandbox's Python.
func environment(version string) map[string]string {
	short := strings.Join(strings.SplitN(version, ".", 3)[:2], ".")
	return map[string]string{
		"implementation_name": "cpython", "implementation_version": version, "os_name": "posix",
		"platform_machine": "wasm32", "platform_python_implementation": "CPython", "platform_release": "0.0.0",
		"platform_system": "wasi", "platform_version": "0.0.0", "python_full_version": version,
		"python_version": short, "sys_platform": "wasi",
	}
}

// indexed is what an index says of a file.
type indexed struct {
	Local    bool   `json:"local"` // it lies in a folder of this machine
	Uploaded string `json:"uploaded"`
	Yanked   bool   `json:"yanked"`
	Young    bool   `json:"young"`
}

// downloaded is an archive that came.
type downloaded struct {
	Package

	file string // "": a runtime has it
}

// python resolves requirements and downloads the wheels.
func (o *Options) python(ctx context.Context, work string, asked []Requirement, pinned []Package) ([]downloaded, error) {
	python := o.Python
	if python == "" {
		python = "python3"
	}
	if _, err := exec.LookPath(python); err != nil {
		return nil, noTool("Python 3 with pip")
	}
	dir := filepath.Join(work, "python")
	stubs, got, report := filepath.Join(dir, "runtime"), filepath.Join(dir, "wheels"), filepath.Join(dir, "index.json")
	for _, d := range []string{dir, stubs, got} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	had := map[string]*Had{}
	for i := range o.Had {
		h := &o.Had[i]
		name, err := stub(stubs, h)
		if err != nil {
			return nil, err
		}
		had[name] = h
	}
	var wants, pins strings.Builder
	for _, r := range asked {
		wants.WriteString(r.Name + r.Spec + "\n")
	}
	for _, p := range pinned {
		pins.WriteString(p.Name + "==" + p.Version + "\n")
	}
	for name, text := range map[string]string{"asked.txt": wants.String(), "pinned.txt": pins.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	before := ""
	if o.MinAge > 0 {
		before = o.clock().Add(-o.MinAge).UTC().Format(time.RFC3339)
	}
	settings, err := json.Marshal(map[string]any{"before": before, "report": report, "environment": environment(o.PythonVersion)})
	if err != nil {
		return nil, err
	}
	args := []string{
		"-c", downloader, string(settings), "--disable-pip-version-check", "--no-input", "download", "--quiet",
		"--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--abi", "none",
		"--python-version", environment(o.PythonVersion)["python_version"], "--dest", got, "--find-links", stubs,
		"-r", "asked.txt", "-c", "pinned.txt",
	}
	if o.From != "" {
		args = append(args, "--no-index", "--find-links", o.From)
	}
	_, failed := tool(ctx, dir, nil, python, args...)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	index := map[string]indexed{}
	b, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(b, &index)
	}
	if failed != nil {
		return nil, o.unresolved(failed, index)
	}
	if err != nil {
		return nil, err
	}
	return o.wheels(got, index, had)
}

// stub writes a wheel that stands for a package of a runtime, whose own may have no wheel
// without native code. It gives its name.
func stub(dir string, h *Had) (string, error) {
	dist := strings.ReplaceAll(h.Name, "-", "_") + "-" + h.Version
	name := dist + "-py3-none-any.whl"
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	z := zip.NewWriter(f)
	for _, file := range [][2]string{
		{"METADATA", "Metadata-Version: 2.1\nName: " + h.Name + "\nVersion: " + h.Version + "\n"},
		{"WHEEL", "Wheel-Version: 1.0\nGenerator: openskill\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"RECORD", ""},
	} {
		w, err := z.Create(dist + ".dist-info/" + file[0])
		if err == nil {
			_, err = io.WriteString(w, file[1])
		}
		if err != nil {
			return "", errors.Join(err, f.Close())
		}
	}
	return name, errors.Join(z.Close(), f.Close())
}

var wheelName = regexp.MustCompile(`^([A-Za-z0-9._]+)-([A-Za-z0-9._!+]+)(-[0-9][A-Za-z0-9_.]*)?-([A-Za-z0-9_.]+)-none-any\.whl$`)

// wheels are the files that pip left in a folder.
func (o *Options) wheels(dir string, index map[string]indexed, had map[string]*Had) ([]downloaded, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > maxPackages {
		return nil, tooMany()
	}
	var all []downloaded
	for _, e := range entries {
		if h := had[e.Name()]; h != nil {
			all = append(all, downloaded{Package: Package{Ecosystem: Python, Name: h.Name, Version: h.Version}})
			continue
		}
		parts := wheelName.FindStringSubmatch(e.Name())
		if parts == nil {
			return nil, &skill.Error{Op: "packages.Add", Code: skill.InvalidArgument, Message: "pip gave a file that is no wheel in pure Python: " + skill.CleanText(e.Name(), 100)}
		}
		d := downloaded{Package: Package{Ecosystem: Python, Name: normal(parts[1]), Version: parts[2]}, file: filepath.Join(dir, e.Name())}
		switch f, known := index[e.Name()]; {
		case !known:
			return nil, refuse(&d.Package, "comes from an address that a package names, and not from the index; name another version")
		case !f.Local && o.MinAge > 0 && f.Uploaded == "":
			return nil, refuse(&d.Package, "has no date of release in the index, so its age cannot be checked; use --min-age 0 if you trust it")
		}
		if d.Needs, err = needs(d.file); err != nil {
			return nil, refused(&d.Package, err)
		}
		all = append(all, d)
	}
	return all, nil
}

var notNormal = regexp.MustCompile(`[-_.]+`)

// normal is the normal form of a name of a Python package.
func normal(name string) string { return strings.ToLower(notNormal.ReplaceAllString(name, "-")) }

const maxMetadata = 4 << 20 // bytes

var requirementName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*`)

// needs are the packages that a wheel says that it needs, whatever on.
func needs(wheel string) ([]string, error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return nil, &skill.Error{Op: "packages.Add", Code: skill.ArchiveRejected, Message: "the wheel is damaged", Err: err}
	}
	defer z.Close()
	var names []string
	for _, f := range z.File {
		if dir, base := filepath.Split(f.Name); base != "METADATA" || !strings.HasSuffix(dir, ".dist-info/") || strings.Count(f.Name, "/") != 1 {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, &skill.Error{Op: "packages.Add", Code: skill.ArchiveRejected, Message: "the wheel is damaged", Err: err}
		}
		b, err := io.ReadAll(io.LimitReader(r, maxMetadata))
		_ = r.Close()
		if err != nil {
			return nil, &skill.Error{Op: "packages.Add", Code: skill.ArchiveRejected, Message: "the wheel is damaged", Err: err}
		}
		lines := bufio.NewScanner(bytes.NewReader(b))
		lines.Buffer(nil, maxMetadata)
		for lines.Scan() {
			text, is := strings.CutPrefix(lines.Text(), "Requires-Dist: ")
			if lines.Text() == "" {
				break // the description follows
			}
			if name := requirementName.FindString(text); is && name != "" {
				names = append(names, normal(name))
			}
		}
		break
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

var noMatch = regexp.MustCompile(`No matching distribution found for ([A-Za-z0-9._-]+)(.*)`)

// unresolved says why pip failed: what the index has of a package tells what is wrong with it.
func (o *Options) unresolved(err error, index map[string]indexed) error {
	var t *toolError
	if !errors.As(err, &t) {
		return err
	}
	fail := func(format string, args ...any) error {
		return &skill.Error{Op: "packages.Add", Code: skill.ToolInvocationError, Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage), Err: err}
	}
	found := noMatch.FindStringSubmatch(t.text)
	switch {
	case strings.Contains(t.text, "No module named pip"):
		return noTool("pip")
	case strings.Contains(t.text, "packages are not built"):
		return fail("a package is there as source alone, which would have to be built; use one with a wheel in pure Python")
	case strings.Contains(t.text, "ResolutionImpossible") && found == nil:
		return fail("the packages do not fit together: %s", last(t.text, 400))
	case found == nil:
		return fail("pip could not download the packages: %s", last(t.text, 400))
	}
	name := normal(found[1])
	var native, pure, source, young, yanked bool
	for file, f := range index {
		switch base, isWheel := strings.CutSuffix(file, ".whl"); {
		case isWheel && normal(strings.SplitN(base, "-", 2)[0]) == name:
			native = native || !strings.HasSuffix(base, "-none-any")
			pure = pure || strings.HasSuffix(base, "-none-any")
			young, yanked = young || f.Young, yanked || f.Yanked
		case !isWheel && strings.HasPrefix(normal(file), name+"-"):
			source = true
		}
	}
	for i := range o.Had {
		if h := &o.Had[i]; h.Name == name {
			return fail("no version of %s fits %s: the runtimes have %s, and others need native code or do not fit", name, strings.TrimSpace(found[1]+found[2]), h.Version)
		}
	}
	switch {
	case pure && young:
		return fail("no version of %s fits that was released more than %s ago; see --min-age", name, ageText(o.MinAge))
	case pure && yanked:
		return fail("the versions of %s that fit were taken back by their authors", name)
	case pure:
		return fail("no version of %s fits %s and Python %s", name, strings.TrimSpace(found[1]+found[2]), o.PythonVersion)
	case native:
		return fail("%s needs native code, which does not run in the sandbox: the index has no wheel of it in pure Python", name)
	case source:
		return fail("%s is there as source alone, which would have to be built: the index has no wheel of it in pure Python", name)
	}
	return fail("package not found in the index: %s", name)
}

// last is the end of what a tool printed, in one line.
func last(text string, most int) string {
	return skill.CleanText(text[max(0, len(text)-most):], most)
}

func tooMany() error {
	return &skill.Error{Op: "packages.Add", Code: skill.InvalidArgument, Message: fmt.Sprintf("too many packages: the limit is %d for the scripts of a folder", maxPackages)}
}

func ageText(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}
