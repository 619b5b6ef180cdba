package app

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/app/hosttest"
	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// agentTenants is a host with two tenants: ann and her operator are in acme, bob is not.
func agentTenants(t *testing.T) (ann, operator, bob asks) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: compiling runtimes takes seconds")
	}
	s := settings(t, map[string]string{"auth": "required"})
	hosttest.Runtimes(t, musttest.Get(filepath.Abs("../.."))(t), s.StateDir)
	musttest.Write(t, filepath.Join(s.SkillsDir, "ours", "SKILL.md"), "---\nname: ours\ndescription: The operator's.\n---\nText.\n")
	db := musttest.Get(OpenStore(t.Context(), s, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { _ = db.Close() })
	v := serve(t, s)
	go func() {
		for v.log.Scan() { // discards the log
		}
	}()
	key := func(tenant string, scopes ...string) asks {
		_, text, err := identity.NewKeys(identity.NewKeyStore(db)).Create(t.Context(), identity.NewKey{Name: "of " + tenant, Tenant: tenant, Scopes: scopes, By: "test"})
		musttest.Do(t, err)
		return asks{v, text}
	}
	user := []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeInvoke + ":run_code", skill.ScopeUpload}
	return key("acme", user...), key("acme", skill.ScopeRead, skill.ScopeAdmin), key("b", user...)
}

// note is an Agent Skill whose script prints a word, and what it gets of an address.
func note(word string, more ...string) map[string]string {
	return map[string]string{
		"note/SKILL.md":         "---\nname: note\ndescription: Writes notes.\n" + strings.Join(more, "") + "---\nRun scripts/say.py.\n",
		"note/scripts/say.py":   "import sys, urllib.request\nprint('" + word + "')\nfor url in sys.argv[1:]:\n    print(urllib.request.urlopen(url).read().decode())\n",
		"note/references/a.txt": word,
	}
}

func (a asks) send(t *testing.T, files map[string]string) answer {
	t.Helper()
	var b strings.Builder
	contentType := multipartOf(t, &b, zipped(t, files))
	status, text := a.ask(t, "POST", "/skills", contentType, b.String())
	var out answer
	musttest.Do(t, json.Unmarshal([]byte(text), &out))
	out.Status = status
	return out
}

func (a asks) say(t *testing.T, args ...string) string {
	t.Helper()
	body := musttest.Get(json.Marshal(map[string]any{"args": append([]string{}, args...)}))(t)
	_, text := a.ask(t, "POST", "/agent-skills/note/scripts/say.py:run", "application/json", string(body))
	var r skill.Result
	musttest.Do(t, json.Unmarshal([]byte(text), &r))
	if r.Error != nil {
		return string(r.Error.Code)
	}
	var data struct{ Output string }
	musttest.Do(t, json.Unmarshal(r.Data, &data))
	return strings.Join(strings.Fields(data.Output), " ")
}

// inCode runs a script of the Agent Skill note in code of the caller, and returns what it printed, or the error's code.
func (a asks) inCode(t *testing.T, args string) string {
	t.Helper()
	body := musttest.Get(json.Marshal(map[string]any{
		"language": "python", "code": "import runpy, sys\nsys.argv[1:] = " + args + "\n_ = runpy.run_path('/mnt/skills/note/scripts/say.py', run_name='__main__')", "agent_skills": []string{"note"},
	}))(t)
	_, text := a.ask(t, "POST", "/code:run", "application/json", string(body))
	var r skill.Result
	musttest.Do(t, json.Unmarshal([]byte(text), &r))
	if r.Error != nil {
		return string(r.Error.Code)
	}
	var data struct{ Stdout string }
	musttest.Do(t, json.Unmarshal(r.Data, &data))
	return strings.Join(strings.Fields(data.Stdout), " ")
}

// mcp sends one request of the Model Context Protocol.
func (a asks) mcp(t *testing.T, method, params string) string {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, method, params)
	req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/mcp", strings.NewReader(body)))(t)
	req.Close = true
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "X-Api-Key": a.key,
	} {
		req.Header.Set(k, v)
	}
	if name, ok := strings.CutPrefix(params, `"name":"`); ok {
		name, _, _ = strings.Cut(name, `"`)
		req.Header.Set("Mcp-Name", name)
	}
	res := musttest.Get(http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req))(t)
	defer res.Body.Close()
	return string(musttest.Get(io.ReadAll(res.Body))(t))
}

// TestUploadedAgentSkill: a SKILL.md folder is uploaded, enabled, run, replaced, rolled back and disabled as other
// skills are, for its tenant alone.
func TestUploadedAgentSkill(t *testing.T) {
	ann, operator, bob := agentTenants(t)
	first := ann.send(t, note("one"))
	if first.Status != 201 || first.ID != "note" || !strings.HasPrefix(first.Version, "0.0.0-sha") || first.State != skill.StateDisabled {
		t.Fatalf("the upload: %+v %+v", first, first.Error)
	}
	preflight := musttest.Get(json.Marshal(first.Report["preflight"]))(t)
	if first.Report["verdict"] != "accepted" || !strings.Contains(string(preflight), "scripts/say.py") {
		t.Errorf("the report: %v", first.Report)
	}
	if status, _ := ann.ask(t, "GET", "/agent-skills/note", "", ""); status != 404 {
		t.Errorf("before it is enabled: %d", status)
	}
	at := func(tenant string) any {
		return ann.host.revision(t.Context(), skill.Principal{ID: "x", Tenant: tenant})
	}
	own, other := at("acme"), at("b")
	ann.want(t, 200, "POST", "/skills/note:enable", "{}")
	if at("acme") == own || at("b") != other {
		t.Error("the tenant's revision did not change, or another tenant's did")
	}
	if status, text := ann.ask(t, "GET", "/agent-skills/note", "", ""); status != 200 || !strings.Contains(text, `"version":"`+first.Version+`"`) || !strings.Contains(text, `"trust":"community"`) {
		t.Errorf("enabled: %d %s", status, text)
	}
	if got := ann.say(t); got != "one" {
		t.Errorf("a run: %s", got)
	}
	if status, text := ann.ask(t, "GET", "/agent-skills/note/resources/references/a.txt", "", ""); status != 200 || text != "one" {
		t.Errorf("a resource: %d %s", status, text)
	}
	if text := ann.mcp(t, "tools/list", ""); !strings.Contains(text, "note (Writes notes.)") || strings.Contains(text, `"name":"note"`) {
		t.Errorf("over MCP: %s", text)
	}
	if text := ann.mcp(t, "tools/call", `"name":"load_skill","arguments":{"skill_name":"note"},`); !strings.Contains(text, "Run scripts/say.py.") {
		t.Errorf("loaded over MCP: %s", text)
	}
	if status, text := ann.ask(t, "POST", "/skills/note:invoke", "application/json", `{"input":{}}`); status != 400 || !strings.Contains(text, "is an Agent Skill") {
		t.Errorf("called: %d %s", status, text)
	}

	// Nobody else finds it.
	if own, others := ann.inCode(t, "[]"), bob.inCode(t, "[]"); own != "one" || others != "NOT_FOUND" {
		t.Errorf("in code: %s and %s", own, others)
	}
	for _, path := range []string{"/agent-skills/note", "/skills/note", "/skills/note/versions", "/agent-skills/note/resources/references/a.txt"} {
		if status, text := bob.ask(t, "GET", path, "", ""); status != 404 {
			t.Errorf("another tenant: %s: %d %s", path, status, text)
		}
	}
	if got := bob.say(t); got != "NOT_FOUND" {
		t.Errorf("another tenant runs it: %s", got)
	}
	for _, text := range []string{bob.mcp(t, "tools/list", ""), bob.mcp(t, "tools/call", `"name":"load_skill","arguments":{"skill_name":"note"},`)} {
		if strings.Contains(text, "Writes notes") || strings.Contains(text, "Run scripts") {
			t.Errorf("another tenant over MCP: %s", text)
		}
	}

	// A second version, which names its version, and a rollback.
	second := ann.send(t, note("two", "metadata: {version: \"2.0.0\"}\n"))
	if second.Status != 201 || second.Version != "2.0.0" {
		t.Fatalf("the next upload: %+v %+v", second, second.Error)
	}
	if got := ann.say(t); got != "one" {
		t.Errorf("before the next one is enabled: %s", got)
	}
	ann.want(t, 200, "POST", "/skills/note:enable", "{}")
	if got := ann.say(t); got != "two" {
		t.Errorf("enabled: %s", got)
	}
	ann.want(t, 200, "POST", "/skills/note:rollback", "{}")
	if got := ann.say(t); got != "one" {
		t.Errorf("rolled back: %s", got)
	}
	if again := ann.send(t, note("one")); again.Error == nil || again.Error.Code != skill.Conflict {
		t.Errorf("the same files again: %+v", again)
	}
	if other := ann.send(t, note("three", "metadata: {version: \"2.0.0\"}\n")); other.Error == nil || other.Error.Code != skill.Conflict {
		t.Errorf("other files of the same version: %+v", other)
	}

	// Both tenants have one of the name; the operator shares one with all, and the own one goes first.
	if got := bob.send(t, note("bobs")); got.Status != 201 {
		t.Fatalf("bob's: %+v", got.Error)
	}
	bob.want(t, 200, "POST", "/skills/note:enable", "{}")
	operator.want(t, 200, "POST", "/skills/note:approve", fmt.Sprintf(`{"tenant":"acme","version":%q}`, first.Version))
	if a, b := ann.say(t), bob.say(t); a != "one" || b != "bobs" {
		t.Errorf("ann's is %q, bob's %q", a, b)
	}
	bob.want(t, 200, "POST", "/skills/note:disable", "{}")
	if got := bob.say(t); got != "one" {
		t.Errorf("the shared one: %s", got)
	}
	ann.want(t, 200, "POST", "/skills/note:enable", `{"version":"2.0.0"}`)
	if a, b := ann.say(t), bob.say(t); a != "two" || b != "one" {
		t.Errorf("ann's is %q, the shared one %q", a, b)
	}
	ann.want(t, 200, "POST", "/skills/note:disable", `{"version":"2.0.0"}`)
	ann.want(t, 200, "POST", "/skills/note:disable", fmt.Sprintf(`{"version":%q}`, first.Version))
	if a, b := ann.say(t), bob.say(t); a != "NOT_FOUND" || b != "NOT_FOUND" {
		t.Errorf("disabled: ann's is %q, bob's %q", a, b)
	}
}

// TestUploadedAgentSkillRefused: names of the operator's, folders without a name, and hostile archives are refused.
func TestUploadedAgentSkillRefused(t *testing.T) {
	ann, _, _ := agentTenants(t)
	for name, c := range map[string]struct {
		files map[string]string
		want  skill.Code
	}{
		"the operator's name": {map[string]string{"SKILL.md": "---\nname: ours\ndescription: Mine.\n---\n"}, skill.Conflict},
		"no frontmatter":      {map[string]string{"SKILL.md": "Text.\n"}, skill.InvalidManifest},
		"no name":             {map[string]string{"SKILL.md": "---\ndescription: Mine.\n---\n"}, skill.InvalidManifest},
		"an invalid name":     {map[string]string{"SKILL.md": "---\nname: ../up\ndescription: Mine.\n---\n"}, skill.InvalidManifest},
		"a name in capitals":  {map[string]string{"SKILL.md": "---\nname: Mine\ndescription: Mine.\n---\n"}, skill.InvalidManifest},
		"no description":      {map[string]string{"SKILL.md": "---\nname: mine\n---\n"}, skill.InvalidManifest},
		"neither manifest":    {map[string]string{"README.md": "Text.\n"}, skill.InvalidManifest},
		"a large SKILL.md":    {map[string]string{"SKILL.md": "---\nname: mine\ndescription: Mine.\n---\n" + strings.Repeat("x\n", 200<<10)}, skill.InvalidManifest},
		"a path upwards":      {map[string]string{"SKILL.md": "---\nname: mine\ndescription: Mine.\n---\n", "../x": ""}, skill.ArchiveRejected},
	} {
		got := ann.send(t, c.files)
		if got.Error == nil || got.Error.Code != c.want {
			t.Errorf("%s: %+v %+v", name, got, got.Error)
		}
	}
}

// TestUploadedAgentSkillAsks: the operator allows one address to the files of one version. Another version, another
// tenant's skill of the name and another address have nothing of it.
func TestUploadedAgentSkillAsks(t *testing.T) {
	ann, operator, bob := agentTenants(t)
	server := func(text string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
		t.Cleanup(s.Close)
		return s
	}
	allowed, other := server("yes"), server("no")
	for _, tenant := range []asks{ann, bob} {
		tenant.send(t, note("one"))
		tenant.want(t, 200, "POST", "/skills/note:enable", "{}")
	}
	if got := ann.say(t, allowed.URL); got != "GUEST_EXIT" {
		t.Errorf("before it is allowed: %s", got)
	}
	var review struct{ Digest, Skill string }
	_, text := operator.ask(t, "GET", "/agent-skills/note/grant", "", "")
	musttest.Do(t, json.Unmarshal([]byte(text), &review))
	if review.Skill != "acme/note" {
		t.Errorf("the review: %s", text)
	}
	if status, text := operator.ask(t, "POST", "/agent-skills/note:allow", "application/json", fmt.Sprintf(`{"digest":%q,"http":[%q]}`, review.Digest, allowed.URL)); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if got := ann.say(t, allowed.URL); got != "one yes" {
		t.Errorf("allowed: %s", got)
	}
	if got := ann.say(t, other.URL); got != "GUEST_EXIT" {
		t.Errorf("another address: %s", got)
	}
	if plain, asking := ann.inCode(t, "[]"), ann.inCode(t, fmt.Sprintf("[%q]", allowed.URL)); plain != "one" || asking != "GUEST_EXIT" {
		t.Errorf("in code: %s and %s", plain, asking)
	}
	if got := bob.say(t, allowed.URL); got != "GUEST_EXIT" {
		t.Errorf("another tenant's skill of the name, with the same files: %s", got)
	}
	if _, text := operator.ask(t, "GET", "/agent-skills", "", ""); !strings.Contains(text, `"grant":"allowed"`) {
		t.Errorf("listed: %s", text)
	}
	ann.send(t, note("two"))
	ann.want(t, 200, "POST", "/skills/note:enable", "{}")
	if got := ann.say(t, allowed.URL); got != "GUEST_EXIT" && got != "FORBIDDEN" {
		t.Errorf("another version: %s", got)
	}
	ann.want(t, 200, "POST", "/skills/note:rollback", "{}")
	operator.want(t, 200, "POST", "/agent-skills/note:revoke", "")
	if got := ann.say(t, allowed.URL); got != "GUEST_EXIT" {
		t.Errorf("revoked: %s", got)
	}
	if status, text := operator.ask(t, "POST", "/agent-skills/note:allow", "application/json", fmt.Sprintf(`{"digest":%q,"http":[%q]}`, review.Digest, allowed.URL)); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	ann.want(t, 200, "POST", "/skills/note:disable", "{}")
	operator.want(t, 200, "POST", "/agent-skills/note:revoke", "") // also of a skill that is disabled
	ann.want(t, 200, "POST", "/skills/note:enable", fmt.Sprintf(`{"digest":%q}`, review.Digest))
	if got := ann.say(t, allowed.URL); got != "GUEST_EXIT" {
		t.Errorf("revoked while it was disabled: %s", got)
	}
}

// TestUploadedAgentSkillFiles: a script gets data files of its caller and a workspace, and no code.
func TestUploadedAgentSkillFiles(t *testing.T) {
	ann, _, _ := agentTenants(t)
	ann.send(t, map[string]string{
		"note/SKILL.md":           "---\nname: note\ndescription: Reads.\nmetadata: {version: \"1.0\"}\n---\nText.\n",
		"note/scripts/say.py":     "import os, helper\nprint(helper.word, open('in.csv').read() if os.path.exists('in.csv') else 'nothing')\nopen('out.txt', 'a').write('x')\n",
		"note/scripts/helper.py":  "word = 'ours'\n",
		"note/references/data.md": "",
	})
	enabled := ann.want(t, 200, "POST", "/skills/note:enable", "{}")
	if enabled.Version != "1.0.0" {
		t.Errorf("the version of a SKILL.md with 1.0 is %s", enabled.Version)
	}
	run := func(body string) string {
		t.Helper()
		_, text := ann.ask(t, "POST", "/agent-skills/note/scripts/say.py:run", "application/json", body)
		var r struct {
			Data  struct{ Output string }
			Error *skill.ResultError
		}
		musttest.Do(t, json.Unmarshal([]byte(text), &r))
		if r.Error != nil {
			return string(r.Error.Code) + " " + r.Error.Message
		}
		return strings.TrimSpace(r.Data.Output)
	}
	if got := run(`{"files": [{"name": "in.csv", "text": "theirs"}], "workspace": "w"}`); got != "ours theirs" {
		t.Errorf("a file of the caller: %s", got)
	}
	if got := run(`{"workspace": "w"}`); got != "ours theirs" {
		t.Errorf("the workspace: %s", got)
	}
	if _, text := ann.ask(t, "GET", "/workspaces/w", "", ""); !strings.Contains(text, `"name":"out.txt"`) {
		t.Errorf("the workspace has %s", text)
	}
	for _, name := range []string{"scripts/helper.py", "scripts/json.py", "json.py", "json/__init__.py", "SKILL.md", "references", "a/PACKAGE.JSON/x.SH"} {
		if got := run(fmt.Sprintf(`{"files": [{"name": %q, "text": "word = 'theirs'"}]}`, name)); !strings.HasPrefix(got, "INVALID_ARGUMENT") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestUploadedAgentSkillChanged: files that were changed on the disk do not run; the admitted ones come back.
func TestUploadedAgentSkillChanged(t *testing.T) {
	ann, _, _ := agentTenants(t)
	first := ann.send(t, note("one"))
	ann.want(t, 200, "POST", "/skills/note:enable", "{}")
	if got := ann.say(t); got != "one" {
		t.Fatalf("a run: %s", got)
	}
	file := filepath.Join(uploadsDir(ann.host.settings.StateDir), "t-acme", strings.TrimPrefix(first.Digest, "sha256:"), "scripts", "say.py")
	musttest.Do(t, os.Chmod(file, 0o600))
	musttest.Do(t, os.WriteFile(file, []byte("print('bad')\n"), 0o600))
	if got := ann.say(t); got != "NOT_FOUND" {
		t.Errorf("after a file was changed: %s", got)
	}
	for end := time.Now().Add(30 * time.Second); ann.say(t) != "one"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("its files are not back")
		}
	}
}

// TestDiscovery: a client downloads the Agent Skills that it can find, and can upload them elsewhere.
func TestDiscovery(t *testing.T) {
	ann, _, bob := agentTenants(t)
	files := note("one")
	files["note/.hidden"] = "not for others"
	ann.send(t, files)
	ann.want(t, 200, "POST", "/skills/note:enable", "{}")
	type index struct {
		Schema string `json:"$schema"`
		Skills []struct{ Name, Type, Description, URL, Digest string }
	}
	read := func(a asks) (x index) {
		_, text := a.ask(t, "GET", "/.well-known/agent-skills/index.json", "", "")
		musttest.Do(t, json.Unmarshal([]byte(text), &x))
		return x
	}
	ours, theirs := read(ann), read(bob)
	if len(ours.Skills) != 2 || ours.Skills[0].Name != "note" || len(theirs.Skills) != 1 || theirs.Skills[0].Name != "ours" || !strings.Contains(ours.Schema, "0.2.0") {
		t.Fatalf("%+v, %+v", ours, theirs)
	}
	status, archive := ann.ask(t, "GET", ours.Skills[0].URL, "", "")
	sum := sha256.Sum256([]byte(archive))
	if status != 200 || ours.Skills[0].Digest != "sha256:"+hex.EncodeToString(sum[:]) || ours.Skills[0].Type != "archive" {
		t.Errorf("%d, %+v", status, ours.Skills[0])
	}
	z := musttest.Get(zip.NewReader(strings.NewReader(archive), int64(len(archive))))(t)
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "SKILL.md references/a.txt scripts/say.py" {
		t.Errorf("the archive has %s", got)
	}
	for path, want := range map[string]int{ours.Skills[0].URL: 404, "/.well-known/agent-skills/..%2f..%2fetc/skill.zip": 404, theirs.Skills[0].URL: 200} {
		if status, text := bob.ask(t, "GET", path, "", ""); status != want {
			t.Errorf("%s: %d %.200s", path, status, text)
		}
	}
	var b strings.Builder
	status, text := bob.ask(t, "POST", "/skills", multipartOf(t, &b, []byte(archive)), b.String())
	if status != 201 {
		t.Errorf("uploaded elsewhere: %d %s", status, text)
	}
}
