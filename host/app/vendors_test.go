package app

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// vendorTenants serves a host with keys of two tenants: ann may upload, reader may only read, and the operator approves.
func vendorTenants(t *testing.T, uploads string) (ann, reader, bob, operator asks) {
	t.Helper()
	s := settings(t, map[string]string{"auth": "required", "uploads": uploads})
	db := musttest.Get(OpenStore(t.Context(), s, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { _ = db.Close() })
	v := serve(t, s)
	go func() {
		for v.log.Scan() { // discards the log
		}
	}()
	key := func(tenant, name string, scopes ...string) asks {
		_, text, err := identity.NewKeys(identity.NewKeyStore(db)).Create(t.Context(), identity.NewKey{Name: name, Tenant: tenant, Scopes: scopes, By: "test"})
		musttest.Do(t, err)
		return asks{v, text}
	}
	all := []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeUpload}
	return key("acme", "ann", all...), key("acme", "reader", skill.ScopeRead), key("b", "bob", all...), key("acme", "operator", skill.ScopeAdmin)
}

// TestOfficialClientsOfSkills has the SDKs of Anthropic and OpenAI call skills and files as they call their vendors.
func TestOfficialClientsOfSkills(t *testing.T) {
	t.Parallel()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = ".openskill"
	}
	if !filepath.IsAbs(state) {
		state = filepath.Join("../..", state)
	}
	python := musttest.Get(filepath.Abs(filepath.Join(state, "llm-clients", "venv", "bin", "python")))(t)
	if _, err := os.Stat(python); err != nil {
		t.Skip("the SDKs of OpenAI and Anthropic for Python are not set up: run scripts/llm-clients.sh .openskill/llm-clients, which needs pip")
	}
	ann, reader, bob, _ := vendorTenants(t, "mb:1")
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	run := exec.CommandContext(ctx, python, "../../scripts/llm-clients/skills.py", ann.url, "../../skills/unit-converter", ann.key, reader.key, bob.key)
	run.Env = append(os.Environ(), "NO_PROXY=127.0.0.1")
	run.WaitDelay = 5 * time.Second
	var out, said bytes.Buffer
	run.Stdout, run.Stderr = &out, &said
	if err := run.Run(); err != nil || strings.Count(out.String(), "ok ") != 5 {
		t.Errorf("%v\n%s%s", err, &out, &said)
	}
}

// formPart is one part of a form, whose head is written as it is.
type formPart struct{ name, file, content, more string }

const boundary = "b0undary"

// formOf is a form without its end.
func formOf(parts ...formPart) string {
	var b strings.Builder
	for _, p := range parts {
		disposition := `form-data; name="` + p.name + `"`
		if p.file != "" {
			disposition += `; filename="` + p.file + `"`
		}
		b.WriteString("--" + boundary + "\r\nContent-Disposition: " + disposition + "\r\n" + p.more + "\r\n" + p.content + "\r\n")
	}
	return b.String()
}

const formEnd = "--" + boundary + "--\r\n"

// raw is post, and tries again as a busy database says, which may have lost the look-up of the key.
func (a asks) raw(t *testing.T, path, vendor, contentType, body string, cutOff bool) (status int, header http.Header, e *skill.ResultError, kind string) {
	t.Helper()
	for range 20 {
		if status, header, e, kind = a.post(t, path, vendor, contentType, body, cutOff); e.Code != skill.AuditUnavailable {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	return status, header, e, kind
}

// post posts a body to a path and returns the answer. If it is cut off, more is announced than is sent.
func (a asks) post(t *testing.T, path, vendor, contentType, body string, cutOff bool) (status int, header http.Header, e *skill.ResultError, kind string) {
	t.Helper()
	conn := musttest.Get(net.Dial("tcp", strings.TrimPrefix(a.url, "http://")))(t)
	defer conn.Close()
	musttest.Do(t, conn.SetDeadline(time.Now().Add(3*time.Minute)))
	length := len(body)
	if cutOff {
		length++
	}
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Api-Key: %s\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", path, a.key, vendor, contentType, length, body)
	musttest.Do(t, err)
	if cutOff {
		musttest.Do(t, conn.(*net.TCPConn).CloseWrite())
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	musttest.Do(t, err)
	defer res.Body.Close()
	var said struct {
		Error struct {
			skill.ResultError

			Type string
		}
	}
	musttest.Do(t, json.NewDecoder(res.Body).Decode(&said))
	return res.StatusCode, res.Header, &said.Error.ResultError, said.Error.Type
}

// TestVendorsCannot sends hostile and damaged forms: each is refused with its code, and nothing of it is left.
func TestVendorsCannot(t *testing.T) {
	t.Parallel()
	ann, _, bob, operator := vendorTenants(t, "mb:1")
	const anthropic = "Anthropic-Version: 2023-06-01\r\n"
	text := func(name string) string { return "---\nname: " + name + "\ndescription: A test.\n---\nText.\n" }
	file := func(name, content string) formPart { return formPart{name: "files[]", file: name, content: content} }
	md := file("evil/SKILL.md", text("evil"))
	many := []formPart{md}
	for i := range 1000 {
		many = append(many, file(fmt.Sprintf("evil/%d", i), ""))
	}
	twice := func(a, b formPart) []formPart { return []formPart{md, a, b} }
	status, _, e, _ := ann.raw(t, "/v1/skills", "", "multipart/form-data; boundary="+boundary, formOf(file("there/SKILL.md", text("there")))+formEnd, false)
	if status != 200 {
		t.Fatalf("a plain form: %d %+v", status, e)
	}
	operator.want(t, 200, "POST", "/skills/there:approve", "") // others find it, and it is still not theirs
	for name, c := range map[string]struct {
		parts    []formPart
		body     string // instead of parts
		path, ct string // instead of /v1/skills and the form's
		by       *asks  // nil: ann
		cutOff   bool
		status   int
		code     skill.Code
		wants    string // in the message, or the report of the admission
	}{
		"outside of the folder":       {parts: []formPart{md, file("evil/../../x", "x")}, status: 422, code: skill.ArchiveRejected, wants: "a part .."},
		"outside, without a folder":   {parts: []formPart{md, file("../x", "x")}, status: 422, code: skill.ArchiveRejected, wants: "a part .."},
		"an absolute name":            {parts: []formPart{md, file("/etc/passwd", "x")}, status: 422, code: skill.ArchiveRejected, wants: "absolute"},
		"a drive":                     {parts: []formPart{md, file("C:/x", "x")}, status: 422, code: skill.ArchiveRejected, wants: "colon"},
		"a backslash":                 {parts: []formPart{md, file(`evil/..\\x`, "x")}, status: 422, code: skill.ArchiveRejected, wants: "backslash"},
		"NUL":                         {parts: []formPart{md, file("evil/x\x00.py", "x")}, status: 400, code: skill.InvalidArgument, wants: "malformed"},
		"NUL, encoded":                {body: formOf(md) + "--" + boundary + "\r\nContent-Disposition: form-data; name=files; filename*=utf-8''evil%2Fx%00.py\r\n\r\nx\r\n" + formEnd, status: 422, code: skill.ArchiveRejected, wants: "control"},
		"not UTF-8":                   {parts: []formPart{md, file("evil/\xff", "x")}, status: 422, code: skill.ArchiveRejected, wants: "UTF-8"},
		"a name twice":                {parts: twice(file("evil/a", "1"), file("evil/a", "2")), status: 422, code: skill.ArchiveRejected, wants: "duplicate"},
		"a name twice but for case":   {parts: twice(file("evil/a", "1"), file("evil/A", "2")), status: 422, code: skill.ArchiveRejected, wants: "differ only in case"},
		"a file that is a folder":     {parts: twice(file("evil/a", "1"), file("evil/a/b", "2")), status: 422, code: skill.ArchiveRejected, wants: "both a file and a folder"},
		"a folder":                    {parts: []formPart{md, file("evil/a/", "")}, status: 400, code: skill.InvalidArgument, wants: "no file name"},
		"no file name":                {parts: []formPart{md, {name: "files[]", more: "X-A: b\r\n"}}, status: 400, code: skill.InvalidArgument, wants: "no file name"},
		"no SKILL.md":                 {parts: []formPart{file("evil/a.md", "x")}, status: 422, code: skill.InvalidManifest, wants: "SKILL.md"},
		"two folders with a SKILL.md": {parts: []formPart{md, file("other/SKILL.md", text("other"))}, status: 422, code: skill.InvalidManifest, wants: "SKILL.md"},
		"a damaged SKILL.md":          {parts: []formPart{file("evil/SKILL.md", "x")}, status: 422, code: skill.InvalidManifest},
		"a skill.yaml":                {parts: []formPart{md, file("evil/skill.yaml", manifestOf("evil", "1.0.0", wasiEntry)), file("evil/m.wasm", string(says("{}", 0)))}, status: 422, code: skill.InvalidManifest, wants: "skill.yaml"},
		"too many files":              {parts: many, status: 400, code: skill.InvalidArgument, wants: "more than 1000 files"},
		"too large":                   {parts: []formPart{md, file("evil/a", strings.Repeat("x", 1<<20))}, status: 413, code: skill.PayloadTooLarge, wants: "1048576"},
		"two zips":                    {parts: []formPart{file("a.zip", "PK"), file("b.zip", "PK")}, status: 400, code: skill.InvalidArgument, wants: "more than one part"},
		"not a zip":                   {parts: []formPart{file("a.zip", "hello")}, status: 422, code: skill.ArchiveRejected},
		"no files":                    {parts: []formPart{{name: "display_name", content: "x"}}, status: 400, code: skill.InvalidArgument, wants: "is missing"},
		"another field":               {parts: []formPart{md, {name: "trust", content: "builtin"}}, status: 400, code: skill.InvalidArgument, wants: "not a known part"},
		"a field twice":               {parts: []formPart{{name: "default", content: "true"}, {name: "default", content: "true"}, md}, status: 400, code: skill.InvalidArgument, wants: "more than once"},
		"a long field":                {parts: []formPart{{name: "display_name", content: strings.Repeat("x", 1025)}, md}, status: 400, code: skill.InvalidArgument, wants: "1024"},
		"a default that is neither":   {parts: []formPart{{name: "default", content: "maybe"}, md}, status: 400, code: skill.InvalidArgument, wants: "true or false"},
		"base64":                      {parts: []formPart{{name: "files", file: "evil/SKILL.md", content: "eA==", more: "Content-Transfer-Encoding: base64\r\n"}}, status: 400, code: skill.InvalidArgument, wants: "Content-Transfer-Encoding"},
		"JSON":                        {body: "{}", ct: "application/json", status: 415, code: skill.UnsupportedEncoding, wants: "multipart/form-data"},
		"cut off in a file":           {body: strings.TrimSuffix(formOf(md), "\r\n"), cutOff: true, status: 400, code: skill.InvalidArgument, wants: "ended early"},
		"cut off after a file":        {body: formOf(md), cutOff: true, status: 400, code: skill.InvalidArgument, wants: "ended early"},
		"cut off at the end":          {body: formOf(md) + "--" + boundary, cutOff: true, status: 400, code: skill.InvalidArgument, wants: "malformed"},
		"without an end":              {body: formOf(md), status: 400, code: skill.InvalidArgument},
		"a file, cut off":             {path: "/v1/files", body: "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc", cutOff: true, status: 400, code: skill.InvalidArgument, wants: "ended early"},
		"a file without a form":       {path: "/v1/files", body: "abc", ct: "application/octet-stream", status: 415, code: skill.UnsupportedEncoding, wants: "multipart/form-data"},
		"a name that is there":        {parts: []formPart{file("there/SKILL.md", text("there")+"More.\n")}, status: 409, code: skill.Conflict, wants: "create a version of it"},
		"a version of another name":   {path: "/v1/skills/skill_there/versions", parts: []formPart{md}, status: 400, code: skill.InvalidArgument, wants: "keeps its name"},
		"a version of another tenant": {path: "/v1/skills/skill_there/versions", by: &bob, parts: []formPart{file("there/SKILL.md", text("there")+"Theirs.\n")}, status: 404, code: skill.NotFound, wants: "skill not found"},
		"the default of another":      {path: "/v1/skills/skill_there", by: &bob, ct: "application/json", body: `{"default_version":"1.0.0"}`, status: 404, code: skill.NotFound, wants: "skill not found"},
		"no default":                  {path: "/v1/skills/skill_there", ct: "application/json", body: `{}`, status: 400, code: skill.InvalidArgument, wants: "is missing"},
		"more than a default":         {path: "/v1/skills/skill_there", ct: "application/json", body: `{"name":"x"}`, status: 400, code: skill.InvalidArgument, wants: "default_version is the only one"},
	} {
		for vendor, kinds := range map[string]map[int]string{
			anthropic: {400: "invalid_request_error", 404: "not_found_error", 409: "conflict_error", 413: "invalid_request_error", 415: "invalid_request_error", 422: "invalid_request_error"},
			"":        {400: "invalid_request_error", 404: "invalid_request_error", 409: "invalid_request_error", 413: "invalid_request_error", 415: "invalid_request_error", 422: "invalid_request_error"},
		} {
			body, path, ct, by := c.body, cmp.Or(c.path, "/v1/skills"), cmp.Or(c.ct, "multipart/form-data; boundary="+boundary), cmp.Or(c.by, &ann)
			if body == "" {
				body = formOf(c.parts...) + formEnd
			}
			status, header, e, kind := by.raw(t, path, vendor, ct, body, c.cutOff)
			told := e.Message + string(musttest.Get(json.Marshal(e.Details))(t))
			if status != c.status || e.Code != c.code || !strings.Contains(told, c.wants) || kind != kinds[status] {
				t.Errorf("%s: %d %s %s %s, want %d %s with %q", name, status, e.Code, kind, told, c.status, c.code, c.wants)
			}
			if again := header.Get("X-Should-Retry"); (again == "false") != (status == 409) {
				t.Errorf("%s: %d with X-Should-Retry %q", name, status, again)
			}
		}
		if left := ann.left(t); left != "there 1 version, 0 files, 0 temporary" {
			t.Fatalf("%s: %s is left", name, left)
		}
	}
	if status, text := bob.ask(t, "GET", "/v1/skills", "", ""); status != 200 || !strings.Contains(text, `"data":[]`) {
		t.Errorf("the other tenant has %d %s", status, text)
	}
}

// TestVendorsArchive: a skill whose zip is larger than 16 MiB is not made in memory.
func TestVendorsArchive(t *testing.T) {
	t.Parallel()
	ann, _, _, _ := vendorTenants(t, "mb:32")
	noise := make([]byte, 17<<20)
	_, _ = rand.Read(noise) // never fails
	files := []formPart{{name: "files[]", file: "big/SKILL.md", content: "---\nname: big\ndescription: A test.\n---\n"}, {name: "files[]", file: "big/a", content: string(noise)}}
	if status, _, e, _ := ann.raw(t, "/v1/skills", "", "multipart/form-data; boundary="+boundary, formOf(files...)+formEnd, false); status != 200 {
		t.Fatalf("a large skill: %d %+v", status, e)
	}
	if status, text := ann.ask(t, "GET", "/v1/skills/skill_big/content", "", ""); status != 413 || !strings.Contains(text, "too large for a download") {
		t.Errorf("its download: %d %.200s", status, text)
	}
}

// left says what a tenant has: of skills, of files, and of what is on its way.
func (a asks) left(t *testing.T) string {
	t.Helper()
	var skills struct {
		Data []struct{ ID, Type string }
	}
	status, text := a.ask(t, "GET", "/skills?limit=100", "", "")
	musttest.Do(t, json.Unmarshal([]byte(text), &skills))
	names := []string{}
	for _, s := range skills.Data {
		if s.ID != "quick" && s.ID != "slow" && s.ID != "run_code" {
			_, text := a.ask(t, "GET", "/skills/"+s.ID+"/versions", "", "")
			names = append(names, fmt.Sprintf("%s %d version", s.ID, strings.Count(text, `"version":`)))
		}
	}
	if status != 200 {
		t.Errorf("the skills: %d %s", status, text)
	}
	_, text = a.ask(t, "GET", "/files", "", "")
	files := strings.Count(text, `"id":`)
	staged := musttest.Get(filepath.Glob(filepath.Join(uploadsDir(a.host.settings.StateDir), ".staging", "*")))(t)
	incoming := musttest.Get(filepath.Glob(filepath.Join(a.host.settings.StateDir, "files", "*", ".in-*")))(t)
	return fmt.Sprintf("%s, %d files, %d temporary", strings.Join(names, ", "), files, len(staged)+len(incoming))
}
