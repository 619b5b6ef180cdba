package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
)

// develops is skill dev at work in a folder of a test.
type develops struct {
	t      *testing.T
	folder string
	lines  *json.Decoder
	stop   context.CancelFunc
	exit   chan int
	stderr *musttest.Buffer
}

// develop makes a skill in a language, and begins to work in its folder.
func develop(t *testing.T, lang string) *develops {
	t.Helper()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), []string{"skill", "new", "hello", "--lang", lang, "--in", dir}, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("skill new: %s", &stderr)
	}
	out, in := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	d := &develops{t: t, folder: filepath.Join(dir, "hello"), lines: json.NewDecoder(out), stop: stop, exit: make(chan int, 1), stderr: &musttest.Buffer{}}
	go func() {
		d.exit <- Run(ctx, []string{"skill", "dev", d.folder, "--json", "--state", filepath.Join(dir, "state")}, strings.NewReader(""), in, d.stderr)
		_ = in.Close()
	}()
	t.Cleanup(stop)
	return d
}

// next waits for the next run.
func (d *develops) next() *devRun {
	d.t.Helper()
	r := &devRun{}
	if err := d.lines.Decode(r); err != nil {
		d.t.Fatalf("no run: %v\n%s", err, d.stderr)
	}
	return r
}

func (d *develops) write(name, text string) {
	d.t.Helper()
	musttest.Do(d.t, os.WriteFile(filepath.Join(d.folder, name), []byte(text), 0o600))
}

func (d *develops) read(name string) string {
	d.t.Helper()
	b := musttest.Get(os.ReadFile(filepath.Join(d.folder, name)))(d.t)
	return string(b)
}

// ends interrupts it, which is how it ends.
func (d *develops) ends() {
	d.t.Helper()
	d.stop()
	go func() { _, _ = io.Copy(io.Discard, d.lines.Buffered()) }()
	if code := <-d.exit; code != 0 {
		d.t.Errorf("exit code %d: %s", code, d.stderr)
	}
}

func TestSkillDev(t *testing.T) {
	t.Parallel()
	d := develop(t, "javascript")
	r := d.next()
	if r.Run != 1 || len(r.Changed) != 0 || r.Built != nil || r.Error != nil || r.Report.Passed != 5 || r.Since != nil {
		t.Errorf("%+v", r)
	}

	// Those of editors say nothing.
	program := d.read("main.mjs")
	d.write(".main.mjs.swp", "x")
	d.write("main.mjs~", "x")
	d.write("main.mjs", strings.ReplaceAll(program, "Hello", "Hi"))
	r = d.next()
	answers := []answerChange{}
	if r.Since != nil {
		answers = r.Since.Answers
	}
	if diff := cmp.Diff([]string{"main.mjs"}, r.Changed); diff != "" || r.Report.Failed != 3 || r.Since == nil || len(r.Since.Broken) != 3 || len(answers) != 3 {
		t.Errorf("%+v %+v %s", r, r.Since, diff)
	} else if c := answers[0].Differences[0]; c.At != "data/greeting" || c.Was != `"Hello, Ada!"` || c.Is != `"Hi, Ada!"` {
		t.Errorf("%+v", c)
	}

	// Other cases: some are fixed, one is new and one is gone.
	list := strings.ReplaceAll(d.read("cases.yaml"), "Hello", "Hi")
	d.write("cases.yaml", strings.Replace(list, "- name: wants a name\n", "- name: really wants a name\n", 1))
	r = d.next()
	fixed := []string{"greets somebody", "greets in any script", "takes blanks away"}
	want := &caseChanges{Run: 2, Fixed: fixed, Mended: fixed, Added: []string{"really wants a name"}, Removed: []string{"wants a name"}}
	if diff := cmp.Diff(want, r.Since); diff != "" || r.Report.Failed != 0 || r.Changed[0] != "cases.yaml" {
		t.Errorf("%v (-want +got):\n%s", r.Changed, diff)
	}

	// A manifest that is none is told, and mended; what is compared with is the last report.
	manifest := d.read("skill.yaml")
	d.write("skill.yaml", "colour: blue\n")
	if r = d.next(); r.Error == nil || r.Error.Code != "INVALID_MANIFEST" || r.Report != nil || !strings.Contains(d.stderr.String(), "colour") {
		t.Errorf("%+v: %s", r, d.stderr)
	}
	d.write("skill.yaml", manifest)
	if r = d.next(); r.Run != 5 || r.Error != nil || r.Since.Run != 3 || r.Since.Answers != nil {
		t.Errorf("%+v %+v", r, r.Since)
	}
	d.ends()
}

// What a build puts in place does not begin the next one, and sources that do not build
// are told.
func TestSkillDevBuilds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds a module three times")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not here")
	}
	hosttest.NoRace(t)
	d := develop(t, "go")
	r := d.next()
	if r.Built == nil || !r.Built.Changed || r.Report.Passed != 5 {
		t.Fatalf("%+v\n%s", r, d.stderr)
	}
	program := d.read("main.go")
	d.write("main.go", program+"\nfunc broken( {\n")
	if r = d.next(); r.Error == nil || r.Error.Code != "INVALID_MODULE" || r.Run != 2 || strings.Join(r.Changed, " ") != "main.go" {
		t.Errorf("%+v", r)
	}
	// Only cases: what did not build is still to be built.
	d.write("cases.yaml", d.read("cases.yaml")+"# more\n")
	if r = d.next(); r.Error == nil || strings.Join(r.Changed, " ") != "cases.yaml" {
		t.Errorf("%+v", r)
	}
	d.write("main.go", program)
	if r = d.next(); r.Built == nil || r.Built.Changed || r.Report.Passed != 5 || r.Run != 4 {
		t.Errorf("%+v", r)
	}
	// Only cases: nothing is built.
	d.write("cases.yaml", d.read("cases.yaml")+"# more\n")
	if r = d.next(); r.Built != nil || r.Report.Passed != 5 || strings.Join(r.Changed, " ") != "cases.yaml" {
		t.Errorf("%+v", r)
	}
	d.ends()
}

// A standard output that is gone ends it.
func TestSkillDevWithoutAReader(t *testing.T) {
	t.Parallel()
	d := develop(t, "javascript")
	d.next()
	d.ends()
	var stderr bytes.Buffer
	if code := Run(t.Context(), []string{"skill", "dev", d.folder, "--state", t.TempDir()}, strings.NewReader(""), broken{}, &stderr); code != exitHost {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
