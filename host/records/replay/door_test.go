package replay_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"openskill/host/dispatch/grants"
	"openskill/host/records/replay"
	"openskill/sdk/skill"
)

// manifestText is that of a skill in Python without a form of input or output.
const manifestText = `id: %s
version: 1.0.0
description: A skill of a test.
type: wasm
runtime: python
entry: main.py
limits: {timeout_ms: 60000, memory_mb: 128, fuel: 900000000000, output_kb: 64, scratch_mb: 4}
permissions: {%s}
input_schema: {type: object}
output_schema: {type: object}
`

// write makes a folder of skills with one.
func write(t *testing.T, id, permissions, program string) string {
	t.Helper()
	root := t.TempDir()
	put(t, filepath.Join(root, id, "skill.yaml"), fmt.Sprintf(manifestText, id, permissions))
	put(t, filepath.Join(root, id, "main.py"), program)
	return root
}

func put(t *testing.T, path, text string) {
	t.Helper()
	musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	musttest.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// ran makes a call of a skill in Python; without a sandboxed one the test is skipped.
func (h *house) ran(t *testing.T, id, input string) string {
	t.Helper()
	r := h.call(id, input)
	if r.Meta.Runner != skill.WasmPython {
		t.Skipf("no Python runtime is installed: %+v", r.Error)
	}
	return r.Meta.ExecutionID
}

// differs holds that a replay says one thing differs, and whether it ran for that.
func (h *house) differs(t *testing.T, id, want string, runs bool) *replay.Report {
	t.Helper()
	r := h.again(t, id)
	var all []string
	for _, d := range r.Differences {
		all = append(all, d.String())
	}
	if got := strings.Join(all, "; "); r.Identical || !strings.Contains(got, want) || (r.ReplayID != "") != runs {
		t.Errorf("%+v: %s\nwant %s", r, got, want)
	}
	return r
}

const draws = `import json, random, sys, time
given = json.load(sys.stdin)
print(json.dumps({"given": given, "time": time.time(), "random": random.random(), "set": list(set("abcdefgh"))}))
`

// TestDrawsOfPython holds that a skill whose every answer is another one replays as identical, by
// another host, and that input is what the guest read, byte by byte.
func TestDrawsOfPython(t *testing.T) {
	root := write(t, "draws", "", draws)
	h := open(t, plan{roots: []string{root}})
	input := "{ \"b\":  1.0 ,\n\t\"a\": \"\\u0041<é\" }"
	id := h.ran(t, "draws", input)
	other := open(t, plan{roots: []string{root}, records: h.records, store: h.store})
	r := other.identical(t, id)
	if of := h.records.all[r.ReplayID]; of.ReplayOf != id || of.TraceID != h.records.all[id].TraceID {
		t.Errorf("%+v", of)
	}
	// A replay is an execution, and has no recording of its own.
	if _, err := h.replayer.Replay(t.Context(), skill.Local(), r.ReplayID); skill.CodeOf(err) != skill.NotFound {
		t.Error(err)
	}
}

// TestFailuresReplay holds that what went wrong goes wrong again: errors of the guest, of its
// output, and its limits.
func TestFailuresReplay(t *testing.T) {
	root := write(t, "fails", "", `import json, random, sys, time
how = json.load(sys.stdin)["input"]["how"]
if how == "raise": raise ValueError(str(random.random()))
if how == "report":
    print(json.dumps({"success": False, "error": {"code": "CONFLICT", "message": str(time.time())}}))
    sys.exit(1)
if how == "no output": print(random.random(), "is no object")
if how == "output": print("x" * 100_000)
if how == "memory": x = "x" * (1 << 30)
if how == "fuel":
    while True: pass
if how == "stack":
    sys.setrecursionlimit(1_000_000)
    def deeper(): deeper()
    deeper()
`)
	put(t, filepath.Join(root, "fails", "skill.yaml"), strings.Replace(fmt.Sprintf(manifestText, "fails", ""), "fuel: 900000000000", "fuel: 1500000000", 1))
	h := open(t, plan{roots: []string{root}})
	codes := map[skill.Code]bool{}
	for _, how := range []string{"raise", "report", "no output", "output", "memory", "fuel", "stack"} {
		id := h.ran(t, "fails", `{"how": "`+how+`"}`)
		codes[h.records.all[id].Finished.Code] = true
		if h.identical(t, id); t.Failed() {
			t.Fatal(how)
		}
	}
	for _, want := range []skill.Code{skill.GuestExit, skill.Conflict, skill.InvalidOutput, skill.OutputLimit, skill.FuelExhausted} {
		if !codes[want] {
			t.Errorf("none of the runs ended with %s: %v", want, codes)
		}
	}
}

// TestClockEnds holds that a run which its time limit ended is not replayed, and why.
func TestClockEnds(t *testing.T) {
	root := write(t, "slow", "", "import sys, time\nsys.stdin.read()\ntime.sleep(3600)")
	put(t, filepath.Join(root, "slow", "skill.yaml"), strings.Replace(fmt.Sprintf(manifestText, "slow", ""), "timeout_ms: 60000", "timeout_ms: 2000", 1))
	h := open(t, plan{roots: []string{root}})
	id := h.ran(t, "slow", `{}`)
	_, err := h.replayer.Replay(t.Context(), skill.Local(), id)
	if skill.CodeOf(err) != skill.Conflict || !strings.Contains(err.Error(), "a timeout") {
		t.Error(err)
	}
}

// TestFilesThatChanged holds that files are named which are not what the run saw, with what
// they were and are, and that nothing runs on them; and that others do not matter.
func TestFilesThatChanged(t *testing.T) {
	data := t.TempDir()
	at := func(name string) string { return filepath.Join(data, filepath.FromSlash(name)) }
	fresh := func() {
		for name, text := range map[string]string{"read.txt": "read", "sub/list.txt": "list", "looked.txt": "looked at", "other.txt": "other"} {
			put(t, at(name), text)
		}
		_ = os.Remove(at("none.txt"))
		_ = os.Remove(at("sub/more.txt"))
	}
	fresh()
	root := write(t, "files", "data: read", `import json, os, sys
json.load(sys.stdin)
print(json.dumps({"read": open("data/read.txt").read(), "list": os.listdir("/data/sub"), "size": os.stat("data/looked.txt").st_size,
    "none": os.path.exists("/data/none.txt")}))
`)
	h := open(t, plan{roots: []string{root}, data: data})
	id := h.ran(t, "files", `{}`)
	h.identical(t, id)
	put(t, at("other.txt"), "something else")
	put(t, at("looked.txt"), "looked_at") // its size is the same, and nothing else was seen
	h.identical(t, id)
	for name, c := range map[string]struct {
		change func() error
		want   string
	}{
		"content":  {func() error { return os.WriteFile(at("read.txt"), []byte("READ"), 0o600) }, "file read.txt: then a file of 4 bytes, sha256 3316348dbadfb7b11c7c2ea235949419e23f9fa898ad2c198f999617912a9925, now a file of 4 bytes, sha256 "},
		"longer":   {func() error { return os.WriteFile(at("read.txt"), []byte("read more"), 0o600) }, "now a file of 9 bytes"},
		"removed":  {func() error { return os.Remove(at("read.txt")) }, "now nothing of that name"},
		"size":     {func() error { return os.WriteFile(at("looked.txt"), nil, 0o600) }, "file looked.txt: then a file of 9 bytes, now a file of 0 bytes"},
		"listed":   {func() error { return os.WriteFile(at("sub/more.txt"), nil, 0o600) }, "file sub: then a folder, its listing has sha256 "},
		"appeared": {func() error { return os.Mkdir(at("none.txt"), 0o700) }, "file none.txt: then nothing of that name, now a folder"},
		"link out": {func() error { return replace(at("read.txt"), "/etc/hostname") }, "file read.txt: then a file of 4 bytes"},
		"dangling": {func() error { return replace(at("read.txt"), "nowhere") }, "now nothing of that name"},
		"gone":     {func() error { return os.RemoveAll(data) }, "the data folder cannot be opened"},
	} {
		t.Run(name, func(t *testing.T) {
			musttest.Do(t, os.MkdirAll(data, 0o755))
			fresh()
			musttest.Do(t, c.change())
			h.differs(t, id, c.want, false)
			_ = os.RemoveAll(at("read.txt"))
		})
	}
}

func replace(path, target string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// TestGrantsThatChanged holds what is said of variables: names, and whether the value is
// another, and never a value.
func TestGrantsThatChanged(t *testing.T) {
	allow := func(env ...string) *grants.Allowed {
		t.Helper()
		a, _, err, _ := grants.Parse("", strings.Join(env, "\n"), "", nil)
		musttest.Do(t, err)
		return a
	}
	root := write(t, "secret", "env: [TOKEN, PLACE]", "import json, os, sys\njson.load(sys.stdin)\nprint(json.dumps({\"n\": len(os.environ[\"TOKEN\"])}))")
	of := plan{roots: []string{root}, allowed: allow("TOKEN=the-secret-value", "PLACE=here"), key: []byte("key of the host"), records: &recs{}, store: replay.NewStore(storetest.SQLite(t))}
	h := open(t, of)
	id := h.ran(t, "secret", `{}`)
	h.identical(t, id)
	row, err := h.store.Get(t.Context(), "local", id)
	if err != nil || strings.Contains(string(row.Body), "secret-value") {
		t.Errorf("the value is kept: %v", err)
	}
	for name, c := range map[string]struct {
		env  *grants.Allowed
		want string
	}{
		"another value": {allow("TOKEN=another-value", "PLACE=here"), "granted env TOKEN: then another value"},
		"not granted":   {allow("PLACE=here"), "granted env TOKEN: then granted, now not granted"},
	} {
		t.Run(name, func(t *testing.T) {
			now := of
			now.allowed = c.env
			r := open(t, now).differs(t, id, c.want, false)
			if text := fmt.Sprintf("%+v", r); strings.Contains(text, "secret-value") || strings.Contains(text, "another-value") {
				t.Error("a value is shown")
			}
		})
	}
	for name, key := range map[string][]byte{"without a key": nil, "on a host with another": []byte("another key")} {
		now := of
		now.key = key
		r := open(t, now).again(t, id)
		if !r.Identical || len(r.Notes) != 2 || !strings.Contains(r.Notes[1], "TOKEN") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// asking is a network that counts.
type asking struct{ n atomic.Int64 }

func (a *asking) For(*skill.Call) skill.Fetch {
	return func(_ context.Context, request []byte) []byte {
		return fmt.Appendf(nil, "%s %d", request, a.n.Add(1))
	}
}

// TestSkillThatChanged holds that of another version of a skill, and of one that is not
// there any more, nothing runs; and what is said where it asks for something else though
// it is the same: here its runner has another mind.
func TestSkillThatChanged(t *testing.T) {
	root := write(t, "changes", "", "import json, sys\njson.load(sys.stdin)\nprint(json.dumps({\"list\": [1, {\"a/b\": 2}]}))")
	store, kept := replay.NewStore(storetest.SQLite(t)), &recs{}
	h := open(t, plan{roots: []string{root}, records: kept, store: store})
	id := h.ran(t, "changes", `{}`)
	h.identical(t, id)

	edited := open(t, plan{roots: []string{root}, records: kept, store: store, runner: func(r skill.Runner) skill.Runner { return &edits{Runner: r} }})
	r := edited.differs(t, id, "data at /list/1/a~1b: then 2, now 3", true)
	if r.Differences[0].Field != "data" || kept.all[r.ReplayID].ReplayOf != id {
		t.Errorf("%+v", r)
	}
	less := open(t, plan{roots: []string{root}, records: kept, store: store, runner: func(r skill.Runner) skill.Runner { return &edits{Runner: r, less: true} }})
	less.differs(t, id, "fuel: then ", true)

	put(t, filepath.Join(root, "changes", "main.py"), "print({})")
	open(t, plan{roots: []string{root}, records: kept, store: store}).differs(t, id, "digest: then sha256:", false)
	put(t, filepath.Join(root, "changes", "skill.yaml"), strings.Replace(fmt.Sprintf(manifestText, "changes", ""), "memory_mb: 128", "memory_mb: 64", 1))
	open(t, plan{roots: []string{root}, records: kept, store: store}).differs(t, id, "limits memory: then 134217728, now 67108864", false)
	musttest.Do(t, os.RemoveAll(filepath.Join(root, "changes")))
	put(t, filepath.Join(root, "other", "skill.yaml"), fmt.Sprintf(manifestText, "other", ""))
	put(t, filepath.Join(root, "other", "main.py"), "")
	open(t, plan{roots: []string{root}, records: kept, store: store}).differs(t, id, "skill: then changes 1.0.0", false)
}

// edits is a runner whose replays are not what they should be.
type edits struct {
	skill.Runner

	less bool
}

func (e *edits) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	r, err := e.Runner.Run(ctx, call)
	switch {
	case err != nil || call.Replay == nil:
	case e.less:
		r.Usage.Fuel--
	default:
		r.Stdout = []byte(strings.ReplaceAll(string(r.Stdout), "2", "3"))
	}
	return r, err
}

// TestNetworkIsNotAsked holds that a replay has the answers that were recorded.
func TestNetworkIsNotAsked(t *testing.T) {
	root := write(t, "asks", "", `import json, sys
json.load(sys.stdin)
answers = []
for what in ("one", "two"):
    with open("/dev/http", "r+b", buffering=0) as f:
        f.write(what.encode())
        answers.append(f.read().decode())
print(json.dumps({"answers": answers}))
`)
	net := &asking{}
	of := plan{roots: []string{root}, outgoing: net, records: &recs{}, store: replay.NewStore(storetest.SQLite(t))}
	h := open(t, of)
	id := h.ran(t, "asks", `{}`)
	if n := net.n.Load(); n != 2 || h.records.all[id].Finished.Code != "" {
		t.Fatalf("%d requests, %+v", n, h.records.all[id].Finished)
	}
	h.identical(t, id)
	of.outgoing = nil // gone
	open(t, of).identical(t, id)
	if n := net.n.Load(); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// TestWhoMayReplay holds that both rights are needed, and that a foreign execution is not
// there.
func TestWhoMayReplay(t *testing.T) {
	root := write(t, "mine", "", "import sys\nsys.stdin.read()\nprint({})")
	h := open(t, plan{roots: []string{root}})
	id := h.ran(t, "mine", `{}`)
	p := skill.Principal{ID: "a", Type: skill.Agent, Tenant: "local", Scopes: []string{skill.ScopeAllExecutions, skill.ScopeInvoke + ":mine"}}
	if r, err := h.replayer.Replay(t.Context(), p, id); err != nil || !r.Identical {
		t.Errorf("%+v, %v", r, err)
	}
	for name, c := range map[string]struct {
		change func(p *skill.Principal)
		want   skill.Code
	}{
		"no right to read":    {func(p *skill.Principal) { p.Scopes = []string{skill.ScopeInvoke} }, skill.NotFound},
		"no right to call":    {func(p *skill.Principal) { p.Scopes = []string{skill.ScopeAllExecutions} }, skill.Forbidden},
		"of another skill":    {func(p *skill.Principal) { p.Scopes[1] = skill.ScopeInvoke + ":other" }, skill.Forbidden},
		"of another tenant":   {func(p *skill.Principal) { p.Tenant = "other" }, skill.NotFound},
		"nobody":              {func(p *skill.Principal) { *p = skill.Principal{} }, skill.NotFound},
		"of what never was":   {func(*skill.Principal) { id = "0190a1b2-0000-7000-8000-000000000001" }, skill.NotFound},
		"of what is no id":    {func(*skill.Principal) { id = "../../etc/passwd" }, skill.NotFound},
		"of nothing, at last": {func(*skill.Principal) { id = "" }, skill.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			other, was := p, id
			other.Scopes = append([]string{}, p.Scopes...)
			c.change(&other)
			r, err := h.replayer.Replay(t.Context(), other, id)
			id = was
			if r != nil || skill.CodeOf(err) != c.want {
				t.Errorf("%+v, %v; want %s", r, err, c.want)
			}
		})
	}
}

// The recording of one execution under the name of another is not replayed as that one.
func TestRefusesTheRecordingOfAnotherExecution(t *testing.T) {
	root := write(t, "mine", "", "import sys\nsys.stdin.read()\nprint({})")
	h := open(t, plan{roots: []string{root}})
	one, other := h.ran(t, "mine", `{"a": 1}`), h.ran(t, "mine", `{"a": 2}`)
	row := musttest.Get(h.store.Get(t.Context(), "local", other))(t)
	row.ExecutionID = one
	swapped := replay.NewStore(storetest.SQLite(t))
	musttest.Do(t, swapped.Keep(t.Context(), row))
	again := open(t, plan{roots: []string{root}, records: h.records, store: swapped})
	if r, err := again.replayer.Replay(t.Context(), skill.Local(), one); r != nil || skill.CodeOf(err) != skill.Conflict {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestKept holds what is kept of runs that cannot be replayed, and that old recordings
// go.
func TestKept(t *testing.T) {
	root := write(t, "large", "", "import json, sys\ngiven = json.load(sys.stdin)\nprint(json.dumps({\"n\": \"x\" * given[\"input\"][\"n\"]}))")
	cli := filepath.Join(root, "native")
	put(t, filepath.Join(cli, "skill.yaml"), strings.Replace(fmt.Sprintf(manifestText, "native", ""), "type: wasm", "type: cli", 1))
	put(t, filepath.Join(cli, "main.py"), "print('{}')")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := open(t, plan{roots: []string{root}, most: 10_000, clock: func() time.Time { return now }})
	small, large, native := h.ran(t, "large", `{"n": 10}`), h.ran(t, "large", `{"n": 20000}`), h.call("native", `{}`)
	h.identical(t, small)
	for id, want := range map[string]string{large: "at most 10000 are stored", native.Meta.ExecutionID: "runs of cli:python are outside the sandbox"} {
		_, err := h.replayer.Replay(t.Context(), skill.Local(), id)
		if skill.CodeOf(err) != skill.Conflict || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if n, err := h.keeps.Prune(t.Context(), now); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := h.keeps.Prune(t.Context(), now.Add(time.Second)); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := h.replayer.Replay(t.Context(), skill.Local(), small); skill.CodeOf(err) != skill.NotFound {
		t.Error(err)
	}
}
