package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/admission/admissiontest"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm/wasmtest"
)

// TestCases holds the public cases U01 to U06 and P02 to what they must give.
func TestCases(t *testing.T) {
	t.Parallel()
	a := admission(t, options())
	seen := map[string]bool{}
	for _, c := range admissiontest.Cases() {
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			_, err := admit(t, a, c.Bytes)
			if code := skill.CodeOf(err); code != c.Want {
				t.Fatalf("got %s (%v), want %s", code, err, c.Want)
			}
			if err == nil {
				return
			}
			var e *skill.Error
			if errors.As(err, &e); !strings.Contains(e.Message, c.Says) {
				t.Errorf("%q does not say %q", e.Message, c.Says)
			}
		})
	}
}

// TestSameDigest: how files were packed does not matter.
func TestSameDigest(t *testing.T) {
	t.Parallel()
	a := admission(t, options())
	var first string
	for _, c := range admissiontest.Cases() {
		switch c.Name { // those with the same files
		case "good-zip", "good-tar", "good-zip-folder", "good-tar-folder", "good-tar-dot", "good-tar-git", "good-zip-sizes-later", "good-zip-comment", "good-tar-padded",
			"good-zip-dot", "good-zip-finder", "good-tar-finder", "good-tar-members":
		default:
			continue
		}
		got := musttest.Get(admit(t, a, c.Bytes))(t)
		if first == "" {
			first = got.Digest
		}
		if got.Digest != first {
			t.Errorf("%s: %s, want %s", c.Name, got.Digest, first)
		}
	}
	files := []admissiontest.Entry{
		{Name: "main.js", Body: []byte(admissiontest.Script), Mode: 0o100755},
		{Name: "empty/"},
		{Name: "skill.yaml", Body: admissiontest.Manifest("up", "1.0.0"), Deflate: true, Central: func(h []byte) { copy(h[12:16], "time") }, Local: func(h []byte) { copy(h[10:14], "time") }},
	}
	got, err := admit(t, a, admissiontest.Zip{Entries: files}.Bytes())
	if err != nil || got.Digest != first {
		t.Errorf("another order, other times and modes, an empty folder: %v, %v; want %s", got, err, first)
	}
}

func goModule() []byte {
	b := wasmtest.New()
	b.Command("")
	return b.Bytes()
}

const wasmManifest = "id: up\nversion: 1.0.0\ndescription: Answers.\ntype: wasm\nruntime: wasi\nentry: %s\n"

// TestModule: a module with its manifest is the same as an archive of both.
func TestModule(t *testing.T) {
	t.Parallel()
	a := admission(t, options())
	file, module := fmt.Sprintf(wasmManifest, "bin/up.wasm"), goModule()
	want, err := admit(t, a, admissiontest.Zip{Entries: []admissiontest.Entry{
		{Name: "skill.yaml", Body: []byte(file)}, {Name: "bin/up.wasm", Body: module, Deflate: true},
	}}.Bytes())
	musttest.Do(t, err)
	for name, c := range map[string]struct {
		manifest string
		module   []byte
		want     skill.Code
		says     string
	}{
		"good":               {file, module, "", ""},
		"no module":          {file, []byte("GIF89a"), skill.InvalidModule, "bin/up.wasm"},
		"nothing":            {file, nil, skill.InvalidModule, "bin/up.wasm"},
		"denied import":      {file, denied(), skill.ImportDenied, "env"},
		"a broken manifest":  {"id: [", module, skill.InvalidManifest, "skill.yaml"},
		"a script":           {string(admissiontest.Manifest("up", "1.0.0")), module, skill.InvalidManifest, "archive"},
		"entry leads out":    {fmt.Sprintf(wasmManifest, "../up.wasm"), module, skill.InvalidManifest, "entry"},
		"entry and manifest": {fmt.Sprintf(wasmManifest, "skill.yaml"), module, skill.ArchiveRejected, "duplicate"},
		"entry of a twin":    {fmt.Sprintf(wasmManifest, "SKILL.yaml"), module, skill.ArchiveRejected, "differ only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := staging(t)
			got, err := a.Admit(t.Context(), Source{Module: spool(t, c.module), Manifest: []byte(c.manifest)}, dir)
			holds(t, a, dir, got, err)
			if code := skill.CodeOf(err); code != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v does not say %q", err, c.says)
				}
				return
			}
			if got.Digest != want.Digest || got.Report.Module == nil {
				t.Errorf("digest %s, module %s; want %s and a report", got.Digest, got.Report.Module, want.Digest)
			}
		})
	}
}

func denied() []byte {
	b := wasmtest.New()
	b.ImportFunc("env", "evil", nil, nil)
	b.Command("")
	return b.Bytes()
}

func TestSources(t *testing.T) {
	t.Parallel()
	a := admission(t, options())
	f := spool(t, nil)
	for name, src := range map[string]Source{
		"nothing":                 {},
		"both":                    {Archive: f, Module: f, Manifest: []byte("x")},
		"an archive and manifest": {Archive: f, Manifest: []byte("x")},
		"a module alone":          {Module: f},
		"a manifest alone":        {Manifest: []byte("x")},
	} {
		dir := staging(t)
		if _, err := a.Admit(t.Context(), src, dir); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLimits reaches every cap: what is at it passes, one more does not.
func TestLimits(t *testing.T) {
	t.Parallel()
	zip := func(files ...admissiontest.Entry) []byte {
		return admissiontest.Zip{Entries: append([]admissiontest.Entry{
			{Name: "skill.yaml", Body: admissiontest.Manifest("up", "1.0.0")}, {Name: "main.js", Body: []byte(admissiontest.Script)},
		}, files...)}.Bytes()
	}
	plain := zip()
	two := int64(len(admissiontest.Manifest("up", "1.0.0")) + len(admissiontest.Script))
	five := make([]byte, 5<<20)
	squeezed := zip(admissiontest.Entry{Name: "a", Body: five, Deflate: true})
	ratio := (two+5<<20-1)/int64(len(squeezed)) + 1
	for name, c := range map[string]struct {
		set   func(o *Options, most int64)
		most  int64 // with which the archive passes
		bytes []byte
		want  skill.Code
	}{
		"archive":  {func(o *Options, n int64) { o.MaxArchive = n }, int64(len(plain)), plain, skill.PayloadTooLarge},
		"unpacked": {func(o *Options, n int64) { o.MaxUnpacked = n }, two, plain, skill.ArchiveRejected},
		"ratio":    {func(o *Options, n int64) { o.MaxRatio = n }, ratio, squeezed, skill.ArchiveRejected},
		"files":    {func(o *Options, n int64) { o.MaxFiles = int(n) }, 3, zip(admissiontest.Entry{Name: "a"}), skill.ArchiveRejected},
		"folders":  {func(o *Options, n int64) { o.MaxFiles = int(n) }, 4, zip(admissiontest.Entry{Name: "a/b/c/d/e"}), skill.ArchiveRejected},
		"depth":    {func(o *Options, n int64) { o.MaxDepth = int(n) }, 3, zip(admissiontest.Entry{Name: "a/b/c"}), skill.ArchiveRejected},
		"name":     {func(o *Options, n int64) { o.MaxName = int(n) }, 12, zip(admissiontest.Entry{Name: "twelve bytes"}), skill.ArchiveRejected},
		"path":     {func(o *Options, n int64) { o.MaxPath = int(n) }, 12, zip(admissiontest.Entry{Name: "twelve/bytes"}), skill.ArchiveRejected},
		"script":   {func(o *Options, n int64) { o.MaxScript = n }, int64(len(admissiontest.Script)), plain, skill.InvalidManifest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			c.set(&o, c.most)
			// Not by admit, which packs anew what was admitted: that may be larger.
			if _, err := admission(t, o).Admit(t.Context(), Source{Archive: spool(t, c.bytes)}, staging(t)); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			o = options()
			c.set(&o, c.most-1)
			if _, err := admit(t, admission(t, o), c.bytes); skill.CodeOf(err) != c.want {
				t.Errorf("one beyond: %v, want %s", err, c.want)
			}
		})
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"no checker":  func(o *Options) { o.Checker = nil },
		"no defaults": func(o *Options) { o.Registry.Defaults = skill.Limits{} },
		"no caps":     func(o *Options) { o.Registry.Caps.Fuel = 0 },
		"negative":    func(o *Options) { o.MaxFiles = -1 },
	} {
		o := options()
		change(&o)
		if a, err := New(o); err == nil {
			t.Errorf("%s: made %v", name, a)
		}
	}
	for archive, unpacked := range map[int64]int64{0: 64 << 20, 40 << 20: 80 << 20} {
		o := options()
		o.MaxArchive = archive
		if a := admission(t, o); a.o.MaxUnpacked != unpacked {
			t.Errorf("archives of %d bytes unpack to %d, want %d", archive, a.o.MaxUnpacked, unpacked)
		}
	}
}

func wasmArchive() []byte {
	return admissiontest.Zip{Entries: []admissiontest.Entry{
		{Name: "skill.yaml", Body: fmt.Appendf(nil, wasmManifest, "up.wasm")}, {Name: "up.wasm", Body: goModule()},
	}}.Bytes()
}

// TestGivenUp: whenever an admission ends early, nothing stays.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	good := wasmArchive()
	over, end := context.WithCancel(t.Context())
	end()
	late, end := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer end()
	broken := errors.New("the checker's process cannot be started")
	for name, c := range map[string]struct {
		ctx   context.Context
		check func(context.Context, *skill.Spec) (json.RawMessage, error)
		slow  bool
		want  skill.Code
	}{
		"cancelled":               {ctx: over, want: skill.Cancelled},
		"late":                    {ctx: late, want: skill.Timeout},
		"too slow to unpack":      {slow: true, want: skill.Timeout},
		"the checker fails":       {check: func(context.Context, *skill.Spec) (json.RawMessage, error) { return nil, broken }, want: skill.Internal},
		"the checker is busy":     {check: refusing(skill.RateLimited), want: skill.RateLimited},
		"cancelled in the check":  {check: refusing(skill.Cancelled), want: skill.Cancelled},
		"too slow to compile":     {check: refusing(skill.CompileTimeout), want: skill.CompileTimeout},
		"the checker was crashed": {check: refusing(skill.WorkerCrashed), want: skill.WorkerCrashed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			if c.check != nil {
				o.Checker = checkerFunc(c.check)
			}
			if c.slow {
				o.Timeout = 1
			}
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			dir := staging(t)
			got, err := admission(t, o).Admit(ctx, Source{Archive: spool(t, good)}, dir)
			if got != nil || skill.CodeOf(err) != c.want {
				t.Errorf("got %v, %v; want %s", got, err, c.want)
			}
			empty(t, dir)
			var e *skill.Error
			errors.As(err, &e)
			if _, reported := e.Details["report"]; reported != (c.want == skill.CompileTimeout || c.want == skill.WorkerCrashed) {
				t.Errorf("a report: %v; one is for what is refused, and not for what failed", reported)
			}
		})
	}
}

func refusing(code skill.Code) func(context.Context, *skill.Spec) (json.RawMessage, error) {
	return func(context.Context, *skill.Spec) (json.RawMessage, error) {
		return nil, &skill.Error{Op: "test", Code: code, Message: "no"}
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// budget is a checker to which every module costs six seconds of ten.
type budget struct{}

func (budget) Check(_ context.Context, _ skill.Kind, _ *skill.Spec, spent *time.Duration) (json.RawMessage, error) {
	if *spent += 6 * time.Second; *spent > 10*time.Second {
		return nil, &skill.Error{Op: "test", Code: skill.CompileTimeout, Message: "no"}
	}
	return nil, nil
}

// TestModulesShareTheirTime: two modules of one upload have no more time than one, and
// those of two uploads have.
func TestModulesShareTheirTime(t *testing.T) {
	t.Parallel()
	o := options()
	o.Checker = budget{}
	a := admission(t, o)
	for range 2 {
		got, err := admit(t, a, wasmArchive())
		if err != nil {
			t.Fatalf("one module: %+v, %v", got, err)
		}
	}
	two := admissiontest.Zip{Entries: []admissiontest.Entry{
		{Name: "skill.yaml", Body: fmt.Appendf(nil, wasmManifest+"fallback: {type: wasm, runtime: wasi, entry: second.wasm}\n", "up.wasm")},
		{Name: "up.wasm", Body: goModule()},
		{Name: "second.wasm", Body: goModule()},
	}}.Bytes()
	_, err := admit(t, a, two)
	if skill.CodeOf(err) != skill.CompileTimeout {
		t.Fatalf("two modules: %v", err)
	}
	if r := reportOf(t, err); r.Refused[0].File != "up.wasm" {
		t.Errorf("refused: %+v", r.Refused)
	}
}

func TestPanicLeavesNothing(t *testing.T) {
	t.Parallel()
	o := options()
	o.Checker = checkerFunc(func(context.Context, *skill.Spec) (json.RawMessage, error) { panic("a fault") })
	dir := staging(t)
	defer func() {
		if p := recover(); p != "a fault" {
			t.Errorf("recovered %v; the panic is not ours to hide", p)
		}
		empty(t, dir)
	}()
	_, _ = admission(t, o).Admit(t.Context(), Source{Archive: spool(t, wasmArchive())}, dir)
}

// TestStagingFails: what the host cannot do is told as that.
func TestStagingFails(t *testing.T) {
	t.Parallel()
	a := admission(t, options())
	closed := spool(t, wasmArchive())
	closed.Close()
	for name, c := range map[string]struct {
		file *os.File
		dir  string
	}{
		"no staging folder": {spool(t, wasmArchive()), filepath.Join(t.TempDir(), "nowhere")},
		"a closed archive":  {closed, staging(t)},
	} {
		_, err := a.Admit(t.Context(), Source{Archive: c.file}, c.dir)
		if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != skill.Internal || e.Err == nil || strings.Contains(e.Message, c.dir) {
			t.Errorf("%s: %v, want INTERNAL with the cause for the log only", name, err)
		}
	}
}

// TestDiscard: what is sealed can be removed, twice, and moved before.
func TestDiscard(t *testing.T) {
	t.Parallel()
	dir := staging(t)
	b := admissiontest.Zip{Entries: []admissiontest.Entry{
		{Name: "skill.yaml", Body: admissiontest.Manifest("up", "1.0.0")}, {Name: "main.js", Body: []byte(admissiontest.Script)}, {Name: "a/b/c"},
	}}.Bytes()
	got := musttest.Get(admission(t, options()).Admit(t.Context(), Source{Archive: spool(t, b)}, dir))(t)
	moved := filepath.Join(t.TempDir(), "moved")
	musttest.Do(t, os.Rename(got.Folder, moved))
	for range 2 {
		musttest.Do(t, Discard(moved))
	}
	if _, err := os.Stat(moved); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestReport shows what authors read.
func TestReport(t *testing.T) {
	t.Parallel()
	file := fmt.Sprintf(wasmManifest, "up.wasm") + "limits: {memory_mb: 500, timeout_ms: 5}\npermissions: {data: read, scratch: true}\n"
	o := options()
	o.Grant = func(s *manifest.Skill) skill.Permissions { return skill.Permissions{Scratch: s.Permissions.Scratch} }
	got, err := admit(t, admission(t, o), admissiontest.Zip{Entries: []admissiontest.Entry{
		{Name: "skill.yaml", Body: []byte(file)}, {Name: "up.wasm", Body: goModule(), Mode: 0o104755},
	}}.Bytes())
	musttest.Do(t, err)
	r := got.Report
	if r.ID != "up" || r.Version != "1.0.0" || !r.Asks.Permissions.Data || r.Gets.Permissions.Data || !r.Gets.Permissions.Scratch {
		t.Errorf("%+v", r)
	}
	if r.Asks.Limits.MemoryMB != 500 || r.Gets.Limits.MemoryMB != 20 || r.Asks.Limits.Fuel != 0 || r.Gets.Limits.Fuel != 10<<20 || r.Gets.Limits.TimeoutMS != 5 {
		t.Errorf("asks %+v, gets %+v", r.Asks.Limits, r.Gets.Limits)
	}
	if len(r.Warnings) != 3 {
		t.Errorf("%q; want one for memory, one for the data folder, one for the set-uid bit", r.Warnings)
	}
	var m struct {
		Accepted bool `json:"accepted"`
	}
	if err := json.Unmarshal(r.Module, &m); err != nil || !m.Accepted {
		t.Errorf("module %s, %v", r.Module, err)
	}
	text := r.Text()
	for _, want := range []string{"accepted: up 1.0.0\n", "warning: limits.memory_mb", "digest: sha256:", "asks: ", "gets: ", "module: accepted", " up.wasm\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}

	_, err = admit(t, admission(t, o), admissiontest.Zip{Entries: []admissiontest.Entry{
		{Name: "skill.yaml", Body: []byte("id: Up\nversion: 1\ncolour: blue\n")},
	}}.Bytes())
	refused := reportOf(t, err)
	want := "refused\n" +
		"skill.yaml:1: INVALID_MANIFEST: invalid skill id \"Up\""
	if text := refused.Text(); !strings.HasPrefix(text, want) || !strings.Contains(text, "skill.yaml:3: INVALID_MANIFEST: ") {
		t.Errorf("got\n%s", text)
	}
	b := musttest.Get(json.Marshal(refused))(t)
	var keys map[string]any
	musttest.Do(t, json.Unmarshal(b, &keys))
	if diff := cmp.Diff([]any{nil, nil, nil, []any{}}, []any{keys["asks"], keys["gets"], keys["module"], keys["warnings"]}); diff != "" {
		t.Errorf("what is not known (-want +got):\n%s", diff)
	}
}

// TestReportIsBounded: a thousand reasons are not a thousand lines.
func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	r := newReport()
	for range 1000 {
		r.refuse(&Refusal{File: strings.Repeat("f", 1000), Code: skill.InvalidManifest, Message: strings.Repeat("m", 1000)})
		r.warn(strings.Repeat("w", 1000))
		r.Files = append(r.Files, File{Path: strings.Repeat("p", 1000)})
	}
	err := r.err(nil)
	b, jsonErr := json.Marshal(r)
	if jsonErr != nil || len(b) > 100_000 {
		t.Errorf("%d bytes, %v", len(b), jsonErr)
	}
	var e *skill.Error
	if errors.As(err, &e); len(e.Message) > skill.MaxMessage || !strings.Contains(e.Message, "49 more") {
		t.Errorf("%q", e.Message)
	}
}

// A folder that cannot be opened again, as without descriptors, ends the upload and not
// the host.
func TestMovedToNowhere(t *testing.T) {
	t.Parallel()
	a := admission(t, options())
	tr := musttest.Get(newTree(t.Context(), &a.o, t.TempDir()))(t)
	if err := tr.moved(filepath.Join(t.TempDir(), "nowhere"), "top"); err == nil {
		t.Error("a folder that is not there is opened")
	}
	tr.close()
}
