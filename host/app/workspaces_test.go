package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// works runs code in the workspace w, and gives its value, or the code of its error.
func works(t *testing.T, h *Host, p skill.Principal, code string, more map[string]any) (value string, r *skill.Result) {
	t.Helper()
	in := map[string]any{"language": "python", "code": code, "workspace": "w"}
	for k, v := range more {
		if in[k] = v; v == nil {
			delete(in, k)
		}
	}
	input := musttest.Get(json.Marshal(in))(t)
	r = h.Invoke(t.Context(), p, skill.Request{SkillID: skill.RunCode, Input: input})
	if r.Error != nil && strings.Contains(r.Error.Message, "is not installed") {
		t.Skip(r.Error.Message)
	}
	if r.Error != nil {
		return string(r.Error.Code), r
	}
	var data struct{ Value json.RawMessage }
	musttest.Do(t, json.Unmarshal(r.Data, &data))
	return string(data.Value), r
}

const listing = "import os\nsorted(os.path.join(d, f)[2:] for d, _, fs in os.walk('.') for f in fs if f != 'main.py')"

// TestWorkspace: calls of all languages see the files of earlier calls. A failed call changes nothing unless the
// request says commit: always. A replay sees the files of its original and changes nothing.
func TestWorkspace(t *testing.T) {
	h := codeHost(t, map[string]string{})
	p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{"skills:invoke", "skills:invoke:run_code", "executions:read"}}
	info := musttest.Get(h.kept.files.Put(t.Context(), p, "up", strings.NewReader("uploaded")))(t)
	names := func() string {
		t.Helper()
		got, _ := works(t, h, p, listing, nil)
		return got
	}
	if got, r := works(t, h, p, "import os\nos.makedirs('d/e')\nopen('d/e/n.txt', 'w').write('1')\nopen('a', 'w').write('a')", map[string]any{
		"files": []map[string]any{{"name": "in.txt", "text": "brought"}, {"name": "up.bin", "id": info.ID}, {"name": "gone", "text": "x"}},
	}); got != "1" {
		t.Fatalf("%s %+v", got, r.Error)
	}
	if got := names(); got != `["a","d/e/n.txt","gone","in.txt","up.bin"]` {
		t.Errorf("%s", got)
	}
	got, counted := works(t, h, p, "import os\nn = int(open('d/e/n.txt').read()) + 1\nopen('d/e/n.txt', 'w').write(str(n))\nos.remove('gone')\nos.rename('a', 'b')\n[n, open('up.bin').read(), open('in.txt').read()]", nil)
	if got != `[2,"uploaded","brought"]` {
		t.Errorf("%s %+v", got, counted.Error)
	}
	if got := names(); got != `["b","d/e/n.txt","in.txt","up.bin"]` {
		t.Errorf("%s", got)
	}

	const fails = "import os\nopen('b', 'w').write('half')\nos.remove('in.txt')\n1 / 0"
	if got, _ := works(t, h, p, fails, nil); got != "GUEST_EXIT" {
		t.Errorf("%s", got)
	}
	if got, _ := works(t, h, p, "[open('b').read(), open('in.txt').read()]", nil); got != `["a","brought"]` {
		t.Errorf("a failed call has changed it: %s", got)
	}
	if got, _ := works(t, h, p, fails, map[string]any{"commit": "always"}); got != "GUEST_EXIT" {
		t.Errorf("%s", got)
	}
	if got, _ := works(t, h, p, "import os\n[open('b').read(), os.path.exists('in.txt')]", nil); got != `["half",false]` {
		t.Errorf("commit always: %s", got)
	}

	before := musttest.Get(h.kept.spaces.Get(t.Context(), p, "w"))(t)
	report := musttest.Get(h.Replay(t.Context(), p, counted.Meta.ExecutionID))(t)
	if after := musttest.Get(h.kept.spaces.Get(t.Context(), p, "w"))(t); !report.Identical || after.Revision != before.Revision {
		t.Errorf("replayed: %+v, %d revisions more", report, after.Revision-before.Revision)
	}
	view := musttest.Get(h.kept.executions.Get(t.Context(), p, counted.Meta.ExecutionID, 0))(t)
	if view.Workspace != "w" {
		t.Errorf("on record: %+v", view)
	}

	shell := func(code string) *skill.Result {
		input := musttest.Get(json.Marshal(map[string]string{"language": "shell", "code": code, "workspace": "w"}))(t)
		return h.Invoke(t.Context(), p, skill.Request{SkillID: skill.RunCode, Input: input})
	}
	if r := shell("cat b; rm up.bin; echo more > d/m; rm -r d/e"); r.Error == nil {
		if got := names(); !strings.Contains(string(r.Data), "half") || got != `["b","d/m"]` {
			t.Errorf("%s %s", r.Data, got)
		}
	}
	if _, err := h.kept.spaces.Get(t.Context(), skill.Principal{ID: "q", Tenant: "acme"}, "w"); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("another principal's: %v", err)
	}
	if r := h.Invoke(t.Context(), p, skill.Request{SkillID: "quick", Input: json.RawMessage(`{}`), Workspace: skill.WorkspaceRef{ID: "w"}}); skill.CodeOf(skillError(r)) != skill.InvalidArgument {
		t.Errorf("a skill without a working folder: %+v", r.Error)
	}
}

func skillError(r *skill.Result) error {
	if r.Error == nil {
		return nil
	}
	return &skill.Error{Code: r.Error.Code}
}

// TestWorkspaceAtOnce: concurrent calls run one after the other, and no change is lost.
func TestWorkspaceAtOnce(t *testing.T) {
	h := codeHost(t, map[string]string{})
	const calls = 8
	var all sync.WaitGroup
	values := make([]string, calls)
	_, _ = works(t, h, skill.Local(), "open('n', 'w').write('0')", nil)
	for i := range calls {
		all.Go(func() {
			values[i], _ = works(t, h, skill.Local(), "n = int(open('n').read()) + 1\nopen('n', 'w').write(str(n))\nn", nil)
		})
	}
	all.Wait()
	slices.Sort(values)
	if fmt.Sprint(values) != "[1 2 3 4 5 6 7 8]" {
		t.Errorf("%v", values)
	}
}

// TestWorkspaceBusy: a call with busy: conflict does not wait for the call that uses the workspace.
func TestWorkspaceBusy(t *testing.T) {
	h := codeHost(t, map[string]string{})
	_, leave, err := h.kept.spaces.Enter(t.Context(), skill.Local(), "w", time.Minute)
	musttest.Do(t, err)
	input := func(busy string) json.RawMessage {
		return json.RawMessage(`{"language":"shell","code":"true","workspace":"w","busy":"` + busy + `"}`)
	}
	call := func(input json.RawMessage) skill.Code {
		r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: skill.RunCode, Input: input})
		return skill.CodeOf(skillError(r))
	}
	began := time.Now()
	if code := call(input("conflict")); code != skill.Conflict || time.Since(began) > 20*time.Second {
		t.Errorf("while it is in use: %s after %s", code, time.Since(began))
	}
	if code := call(input("retry")); code != skill.InvalidArgument {
		t.Errorf("an unknown word: %s", code)
	}
	waits := make(chan skill.Code)
	go func() { waits <- call(input("wait")) }()
	leave()
	if code := <-waits; code == skill.Conflict {
		t.Errorf("one that waits: %s", code)
	}
}

// TestWorkspaceHostile: odd file names, too many files, and folders in place of files are safe. A call whose changes
// cannot be saved fails and changes nothing.
func TestWorkspaceHostile(t *testing.T) {
	h := codeHost(t, map[string]string{})
	p := skill.Local()
	if got, _ := works(t, h, p, "open('a', 'w').write('a')", nil); got != "1" {
		t.Fatal(got)
	}
	if got, r := works(t, h, p, "for i in range(1001): open(f'f{i}', 'w').write('x')", map[string]any{}); got != string(skill.PayloadTooLarge) {
		t.Errorf("%s %+v", got, r.Error)
	}
	if got, r := works(t, h, p, "import os\nfor n in ('x\\n', 'c:\\\\d', 'e\\x1b[2J', '\\u202e', '-rf', 'main.pyc'):\n open(n, 'w').write('x')\nos.remove('a')\nos.makedirs('a/b')\nopen('a/b/c', 'w').write('c')\nos.symlink('a/b', 'l')", nil); r.Error != nil {
		t.Errorf("%s %+v", got, r.Error)
	}
	if got, _ := works(t, h, p, listing, nil); strings.ContainsAny(got, "\n\x1b\u202e\\") || !strings.Contains(got, `"a/b/c"`) || strings.Contains(got, `"l"`) || strings.Contains(got, `"a"`) {
		t.Errorf("%s", got)
	}
	if got, r := works(t, h, p, "1", map[string]any{"files": []map[string]any{{"name": "a", "text": "in the place of a folder"}}}); got != string(skill.InvalidArgument) {
		t.Errorf("%s %+v", got, r.Error)
	}
	s := musttest.Get(h.kept.spaces.Get(t.Context(), p, "w"))(t)
	for _, f := range s.Files {
		if f.Name == "a/b/c" { // as a sweep, or another copy of the database, might
			_, err := h.kept.db.Exec(t.Context(), "DELETE FROM files WHERE digest = $1", f.ID)
			musttest.Do(t, err)
		}
	}
	if got, r := works(t, h, p, "1", nil); got != string(skill.NotFound) || !strings.Contains(r.Error.Message, "a/b/c") {
		t.Errorf("%s %+v", got, r.Error)
	}
	if got, r := works(t, h, p, "open('a/b/c').read()", map[string]any{"files": []map[string]any{{"name": "a/b/c", "text": "again"}}}); got != `"again"` {
		t.Errorf("%s %+v", got, r.Error)
	}
	if got, _ := works(t, h, p, "open('a/b/c').read()", nil); got != `"again"` {
		t.Errorf("%s", got)
	}
}
