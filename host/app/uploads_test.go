package app

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"openskill/host/admission"
	"openskill/host/app/hosttest"
	"openskill/host/catalogue"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm/wasmtest"
)

// says is a module that waits and then prints text.
func says(text string, after time.Duration) []byte {
	b := wasmtest.New()
	poll, write := b.Import("poll_oneoff"), b.Import("fd_write")
	b.Memory(1)
	clock := make([]byte, 48)
	clock[16] = 1                                            // monotonic
	binary.LittleEndian.PutUint64(clock[24:], uint64(after)) // not negative
	b.Data(0, string(clock))
	vec := make([]byte, 8)
	binary.LittleEndian.PutUint32(vec, 512)
	binary.LittleEndian.PutUint32(vec[4:], uint32(len(text)))
	b.Data(256, string(vec))
	b.Data(512, text)
	var body wasmtest.Code
	if after > 0 {
		body = wasmtest.I32(0) + wasmtest.I32(128) + wasmtest.I32(1) + wasmtest.I32(1024) + wasmtest.Call(poll) + wasmtest.Drop
	}
	b.Command(body + wasmtest.I32(1) + wasmtest.I32(256) + wasmtest.I32(1) + wasmtest.I32(1032) + wasmtest.Call(write) + wasmtest.Drop)
	return b.Bytes()
}

func manifestOf(id, version, rest string) string {
	return fmt.Sprintf("id: %s\nversion: %s\ndescription: An upload.\n%s", id, version, rest)
}

const wasiEntry = "type: wasm\nruntime: wasi\nentry: m.wasm\n"

// zipped is a folder as an archive.
func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		musttest.Do(t, err)
	}
	musttest.Do(t, z.Close())
	return b.Bytes()
}

// answer is what any route says.
type answer struct {
	Status  int                `json:"-"`
	ID      string             `json:"id"`
	Version string             `json:"version"`
	Digest  string             `json:"digest"`
	State   skill.State        `json:"state"`
	Reason  string             `json:"reason"`
	Report  map[string]any     `json:"report"`
	Error   *skill.ResultError `json:"error"`
	Data    json.RawMessage    `json:"data"`
	Meta    skill.Meta         `json:"meta"`

	Packages *skill.UploadPackages `json:"packages"`
}

func (v *serving) do(t *testing.T, method, path, contentType string, body []byte) answer {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), method, v.url+path, bytes.NewReader(body)))(t)
	req.Close = true
	req.Header.Set("Content-Type", contentType)
	res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return answer{}
	}
	defer res.Body.Close()
	var a answer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
	var data bytes.Buffer // the skill's own spaces do not matter
	if json.Compact(&data, a.Data) == nil {
		a.Data = data.Bytes()
	}
	a.Status = res.StatusCode
	return a
}

// upload posts an archive.
func (v *serving) upload(t *testing.T, query string, parts map[string][]byte) answer {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, content := range parts {
		p, err := w.CreateFormFile(name, name)
		if err == nil {
			_, err = p.Write(content)
		}
		musttest.Do(t, err)
	}
	musttest.Do(t, w.Close())
	return v.do(t, "POST", "/skills"+query, w.FormDataContentType(), b.Bytes())
}

func (v *serving) call(t *testing.T, id string) answer {
	t.Helper()
	return v.do(t, "POST", "/skills/"+id+":invoke", "application/json", []byte(`{"input": {}}`))
}

func (v *serving) act(t *testing.T, id, action, body string) answer {
	t.Helper()
	return v.do(t, "POST", "/skills/"+id+":"+action, "application/json", []byte(body))
}

// got is what a test compares of an answer.
func (a answer) got() string {
	if a.Error != nil {
		return fmt.Sprintf("%d %s", a.Status, a.Error.Code)
	}
	if len(a.Data) > 0 {
		return fmt.Sprintf("%d %s", a.Status, a.Data)
	}
	return fmt.Sprintf("%d %s %s", a.Status, a.Version, a.State)
}

func expect(t *testing.T, what string, a answer, want string) {
	t.Helper()
	if got := a.got(); got != want {
		t.Errorf("%s: %s, want %s (%+v)", what, got, want, a.Error)
	}
}

// The life of an upload over HTTP: in, enabled, called, replaced, rolled back, gone.
func TestLifeOfAnUpload(t *testing.T) {
	v := serve(t, settings(t, nil))
	one := zipped(t, map[string]string{"up/skill.yaml": manifestOf("up", "1.0.0", wasiEntry), "up/m.wasm": string(says(`{"v": 1}`, 0))})
	expect(t, "a dry run", v.upload(t, "?dry_run=true", map[string][]byte{"archive": one}), "200 1.0.0 dry_run")
	expect(t, "before it is there", v.call(t, "up"), "404 NOT_FOUND")
	first := v.upload(t, "", map[string][]byte{"archive": one})
	expect(t, "the upload", first, "201 1.0.0 disabled")
	if first.ID != "up" || !strings.HasPrefix(first.Digest, "sha256:") || first.Report["verdict"] != "accepted" || first.Report["digest"] != first.Digest {
		t.Errorf("the answer is %+v", first)
	}
	if a := v.call(t, "up"); a.got() != "404 NOT_FOUND" || !strings.Contains(a.Error.Message, ":enable") {
		t.Errorf("disabled: %+v", a.Error)
	}
	again := v.upload(t, "", map[string][]byte{"archive": one})
	if expect(t, "the same again", again, "409 CONFLICT"); again.Error != nil && again.Error.Details["digest"] != first.Digest {
		t.Errorf("the conflict is with %+v", again.Error)
	}
	if a := v.upload(t, "?dry_run=true", map[string][]byte{"archive": one}); a.got() != "409 CONFLICT" || a.Error.Details["report"] == nil {
		t.Errorf("a dry run of the same: %s %+v", a.got(), a.Error)
	}
	expect(t, "enabling", v.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	expect(t, "a call", v.call(t, "up"), `200 {"v":1}`)

	two := v.upload(t, "", map[string][]byte{"module": says(`{"v": 2}`, 0), "manifest": []byte(manifestOf("up", "1.1.0", wasiEntry))})
	expect(t, "a module with its manifest", two, "201 1.1.0 disabled")
	expect(t, "a call meanwhile", v.call(t, "up"), `200 {"v":1}`)
	expect(t, "enabling the newest", v.act(t, "up", "enable", ""), "200 1.1.0 enabled")
	expect(t, "a call then", v.call(t, "up"), `200 {"v":2}`)
	expect(t, "the old version by its name", v.do(t, "POST", "/skills/up:invoke", "application/json", []byte(`{"input": {}, "version": "1.0.0"}`)), `200 {"v":1}`)
	expect(t, "going back", v.act(t, "up", "rollback", ""), "200 1.0.0 enabled")
	if a := v.call(t, "up"); a.got() != `200 {"v":1}` || a.Meta.Digest != first.Digest || a.Meta.Version != "1.0.0" {
		t.Errorf("after going back: %s, %+v", a.got(), a.Meta)
	}
	for _, of := range []answer{first, two} { // the reports of both, whichever is current
		a := v.do(t, "GET", "/skills/up/versions/"+of.Version, "", nil)
		byPath := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
		if diff := cmp.Diff(of.Report, a.Report, byPath); a.Status != 200 || a.ID != "up" || a.Digest != of.Digest || diff != "" {
			t.Errorf("the report of %s: %d %+v %s", of.Version, a.Status, a.Error, diff)
		}
	}
	expect(t, "the report of no version", v.do(t, "GET", "/skills/up/versions/9.0.0", "", nil), "404 NOT_FOUND")
	expect(t, "the report of the operator's", v.do(t, "GET", "/skills/quick/versions/0.1.0", "", nil), "404 NOT_FOUND")
	expect(t, "going back further", v.act(t, "up", "rollback", ""), "409 CONFLICT")
	expect(t, "the other version", v.do(t, "GET", "/skills/up?version=1.1.0", "", nil), "200 1.1.0 disabled")
	expect(t, "deleting", v.do(t, "DELETE", "/skills/up/versions/1.0.0", "", nil), "200 1.0.0 deleted")
	expect(t, "a call of what is gone", v.call(t, "up"), "404 NOT_FOUND")
	expect(t, "no such version", v.do(t, "GET", "/skills/up?version=1.0.0", "", nil), "404 NOT_FOUND")
	expect(t, "an id of the operator's", v.upload(t, "", map[string][]byte{"module": says("{}", 0), "manifest": []byte(manifestOf("quick", "9.0.0", wasiEntry))}), "409 CONFLICT")
	expect(t, "the operator's skill", v.call(t, "quick"), "200 {}")
	expect(t, "disabling the operator's", v.act(t, "quick", "disable", ""), "200 0.1.0 disabled")
	expect(t, "a call of it", v.call(t, "quick"), "404 NOT_FOUND")
	expect(t, "changing it", v.do(t, "PATCH", "/skills/quick", "application/json", []byte(`{"is_enabled": null, "cost_metadata": {"rate_limit_per_minute": 1}}`)), "200 0.1.0 ")
	expect(t, "a call then", v.call(t, "quick"), "200 {}")
	expect(t, "one too many", v.call(t, "quick"), "429 RATE_LIMITED")
	expect(t, "taking it away", v.do(t, "DELETE", "/skills/quick", "", nil), "200 0.1.0 deleted")
	expect(t, "a call of what is away", v.call(t, "quick"), "404 NOT_FOUND")
	expect(t, "its id is still the operator's", v.upload(t, "", map[string][]byte{"module": says("{}", 0), "manifest": []byte(manifestOf("quick", "9.0.0", wasiEntry))}), "409 CONFLICT")
	expect(t, "bringing it back", v.act(t, "quick", "enable", ""), "200 0.1.0 enabled")
}

func TestRefusedUploadsChangeNothing(t *testing.T) {
	v := serve(t, settings(t, nil))
	for name, c := range map[string]struct {
		parts map[string][]byte
		want  string
	}{
		"no module":     {map[string][]byte{"module": []byte("hello"), "manifest": []byte(manifestOf("up", "1.0.0", wasiEntry))}, "422 INVALID_MODULE"},
		"no archive":    {map[string][]byte{"archive": []byte("hello")}, "422 ARCHIVE_REJECTED"},
		"no manifest":   {map[string][]byte{"archive": zipped(t, map[string]string{"m.wasm": "x"})}, "422 INVALID_MANIFEST"},
		"zip slip":      {map[string][]byte{"archive": zipped(t, map[string]string{"../evil": "x", "skill.yaml": manifestOf("up", "1.0.0", wasiEntry)})}, "422 ARCHIVE_REJECTED"},
		"the CLI (P02)": {map[string][]byte{"archive": zipped(t, map[string]string{"skill.yaml": manifestOf("up", "1.0.0", "type: cli\nruntime: python\nentry: m.py\n"), "m.py": "print('{}')"})}, "422 INVALID_MANIFEST"},
	} {
		t.Run(name, func(t *testing.T) {
			a := v.upload(t, "", c.parts)
			expect(t, name, a, c.want)
			if a.Error != nil && a.Error.Details["report"] == nil {
				t.Error("there is no report")
			}
		})
	}
	expect(t, "the catalogue", v.do(t, "GET", "/skills/up", "", nil), "404 NOT_FOUND")
}

// A new version does not disturb calls in flight.
func TestNewVersionWhileCallsRun(t *testing.T) {
	v := serve(t, settings(t, nil))
	slow := map[string][]byte{"module": says(`{"v": 1}`, 700*time.Millisecond), "manifest": []byte(manifestOf("up", "1.0.0", wasiEntry))}
	expect(t, "the upload", v.upload(t, "", slow), "201 1.0.0 disabled")
	expect(t, "enabling", v.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	expect(t, "a first call", v.call(t, "up"), `200 {"v":1}`) // so that those below begin at once
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { expect(t, "a call under way", v.call(t, "up"), `200 {"v":1}`) })
	}
	time.Sleep(200 * time.Millisecond) // the calls have begun; if not, the test still holds
	fast := map[string][]byte{"module": says(`{"v": 2}`, 0), "manifest": []byte(manifestOf("up", "2.0.0", wasiEntry))}
	expect(t, "the next upload", v.upload(t, "", fast), "201 2.0.0 disabled")
	expect(t, "enabling it", v.act(t, "up", "enable", `{"version": "2.0.0"}`), "200 2.0.0 enabled")
	expect(t, "a call of it", v.call(t, "up"), `200 {"v":2}`)
	expect(t, "deleting the old one", v.do(t, "DELETE", "/skills/up/versions/1.0.0", "", nil), "200 1.0.0 deleted")
	all.Wait()
}

// U07 over HTTP: fifty uploads of one id and version at once.
func TestFiftyUploadsAtOnce(t *testing.T) {
	v := serve(t, settings(t, nil))
	archive := zipped(t, map[string]string{"skill.yaml": manifestOf("up", "1.0.0", wasiEntry), "m.wasm": string(says(`{"v": 1}`, 0))})
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			got := v.upload(t, "", map[string][]byte{"archive": archive}).got()
			mu.Lock()
			defer mu.Unlock()
			seen[got]++
		})
	}
	all.Wait()
	if diff := cmp.Diff(map[string]int{"201 1.0.0 disabled": 1, "409 CONFLICT": 49}, seen); diff != "" {
		t.Error(diff)
	}
}

// What a skill reaches over and over takes it out of service, until the operator's
// word.
func TestQuarantineOverHTTP(t *testing.T) {
	v := serve(t, settings(t, map[string]string{"quarantine-limits": "3"}))
	slow := map[string][]byte{"module": says(`{}`, time.Hour), "manifest": []byte(manifestOf("up", "1.0.0", wasiEntry+"limits: {timeout_ms: 100}\n"))}
	expect(t, "the upload", v.upload(t, "", slow), "201 1.0.0 disabled")
	expect(t, "enabling", v.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	n := 0
	a := v.call(t, "up")
	for ; a.got() == "408 TIMEOUT"; n++ { // one whose time was over before its process was there does not count
		a = v.call(t, "up")
	}
	if n < 3 || a.got() != "404 NOT_FOUND" || !strings.Contains(a.Error.Message, "quarantined") {
		t.Errorf("a call in quarantine, after %d: %s %+v", n, a.got(), a.Error)
	}
	if a := v.do(t, "GET", "/skills/up", "", nil); a.State != skill.StateQuarantined || !strings.Contains(a.Reason, "TIMEOUT") {
		t.Errorf("the catalogue says %+v", a)
	}
	expect(t, "the operator's word", v.act(t, "up", "enable", `{"reason": "it had a slow day"}`), "200 1.0.0 enabled")
	expect(t, "a call after it", v.call(t, "up"), "408 TIMEOUT")
}

// A tenant finds its own uploads and what was approved for all; what it does not
// find is answered as what is not there.
func TestTenants(t *testing.T) {
	h := musttest.Get(Open(settings(t, nil), &Options{Mode: Serving, Log: slog.New(slog.DiscardHandler)}))(t)
	defer h.Close()
	a := skill.Principal{ID: "ann", Type: skill.Human, Tenant: "a", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeUpload}}
	b := skill.Principal{ID: "bob", Type: skill.Human, Tenant: "b", Scopes: a.Scopes}
	operator := skill.Principal{ID: "op", Type: skill.Human, Tenant: "ops", Scopes: append([]string{skill.ScopeAdmin}, a.Scopes...)}
	h.publish(t, a, "up", "1.0.0", `{"of": "a"}`)
	enable := which("up", "")
	musttest.Get(h.decide(catalogue.Enable, a, enable))(t)
	say := func(p skill.Principal) string {
		r := h.Invoke(t.Context(), p, skill.Request{SkillID: "up", Input: []byte("{}")})
		if r.Error != nil {
			return string(r.Error.Code) + " " + r.Error.Message
		}
		return string(r.Data)
	}
	unknown := h.Invoke(t.Context(), b, skill.Request{SkillID: "nope", Input: []byte("{}")}).Error
	if got := say(b); got != string(unknown.Code)+" "+unknown.Message {
		t.Errorf("another tenant is told %q, and %q of what is not there", got, unknown.Message)
	}
	if got := say(a); got != `{"of": "a"}` {
		t.Errorf("its own tenant is told %s", got)
	}
	for what, act := range map[string]func() error{
		"enables":    func() error { _, err := h.decide(catalogue.Enable, b, enable); return err },
		"disables":   func() error { _, err := h.decide(catalogue.Disable, b, enable); return err },
		"rolls back": func() error { _, err := h.decide(catalogue.Rollback, b, enable); return err },
		"deletes":    func() error { _, err := h.decide(catalogue.Delete, b, which("up", "1.0.0")); return err },
		"looks at":   func() error { _, err := h.Catalogue().Get(b, "up", ""); return err },
		"looks at v": func() error { _, err := h.Catalogue().Get(b, "up", "1.0.0"); return err },
		"lists":      func() error { _, err := h.Catalogue().Versions(b, "up"); return err },
		"is an admin": func() error {
			_, err := h.decide(catalogue.Disable, skill.Principal{ID: "x", Type: skill.Human, Tenant: "b", Scopes: []string{skill.ScopeUpload}}, enable)
			return err
		},
	} {
		if err := act(); skill.CodeOf(err) != skill.NotFound {
			t.Errorf("another tenant %s it: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"approves":             errOf(h.decide(catalogue.Approve, a, enable)),
		"names another tenant": errOf(h.decide(catalogue.Enable, b, whichOf("a", "up"))),
		"without a scope":      errOf(h.decide(catalogue.Enable, skill.Principal{ID: "x", Type: skill.Human, Tenant: "a", Scopes: []string{skill.ScopeInvoke}}, enable)),
	} {
		if skill.CodeOf(err) != skill.Forbidden {
			t.Errorf("a caller %s: %v", what, err)
		}
	}
	if list, _, err := h.Catalogue().List(b, "", 0); err != nil || len(list) != 2 {
		t.Errorf("another tenant's catalogue: %v, %v", list, err)
	}
	if list, next, err := h.Catalogue().List(a, "quick", 1); err != nil || len(list) != 1 || list[0].ID != "slow" || next != "slow" {
		t.Errorf("a page: %v, %q, %v", list, next, err)
	}

	of := whichOf("a", "up")
	// What the operator says of another tenant's files names them: the id alone, or with the version,
	// may be of other files by now, and so may the tenant's current version.
	for what, w := range map[string]catalogue.Decision{"the id": enable, "a version": which("up", "1.0.0"), "the tenant": of} {
		if _, err := h.decide(catalogue.Approve, operator, w); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("approved by %s alone: %v", what, err)
		}
	}
	if _, err := h.decide(catalogue.Delete, operator, which("up", "1.0.0")); skill.CodeOf(err) != skill.InvalidArgument {
		t.Errorf("deleted by the version alone: %v", err)
	}
	of.Version = "1.0.0"
	if v, err := h.decide(catalogue.Approve, operator, of); err != nil || !v.Shared {
		t.Fatal(v, err)
	}
	if got := say(b); got != `{"of": "a"}` {
		t.Errorf("approved: %s", got)
	}
	h.publish(t, b, "up", "0.1.0", `{"of": "b"}`)
	musttest.Get(h.decide(catalogue.Enable, b, enable))(t)
	if got := say(b); got != `{"of": "b"}` {
		t.Errorf("its own goes first: %s", got)
	}
	if got := say(a); got != `{"of": "a"}` {
		t.Errorf("the other's does not: %s", got)
	}
	if _, err := h.decide(catalogue.Disable, operator, enable); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("two tenants have it: %v", err)
	}
	if _, err := h.decide(catalogue.Disable, operator, whichOf("a", "up")); err != nil {
		t.Error(err)
	}
	if got := say(a); !strings.HasPrefix(got, "NOT_FOUND") {
		t.Errorf("disabled by the operator: %s", got)
	}
	// Who decides about uploads need not be able to upload.
	decides := skill.Principal{ID: "decider", Type: skill.Agent, Tenant: "ops", Scopes: []string{skill.ScopeAdmin}}
	if _, err := h.decide(catalogue.Enable, decides, of); err != nil {
		t.Error(err)
	}
	if got := say(a); got != `{"of": "a"}` {
		t.Errorf("enabled by who decides: %s", got)
	}
	if _, err := h.uploads.Begin(decides); skill.CodeOf(err) != skill.Forbidden {
		t.Errorf("who decides begins an upload: %v", err)
	}
}

func which(id skill.ID, version string) catalogue.Decision {
	return catalogue.Decision{ID: id, Version: version}
}

func whichOf(tenant string, id skill.ID) catalogue.Decision {
	return catalogue.Decision{Tenant: tenant, ID: id}
}

// decide makes a decision of p.
func (h *Host) decide(action catalogue.Action, p skill.Principal, d catalogue.Decision) (skill.VersionState, error) {
	d.Action, d.By = action, p
	return h.uploads.Decide(d)
}

func errOf(_ skill.VersionState, err error) error { return err }

// publish uploads a module that says text, without HTTP.
func (h *Host) publish(t *testing.T, p skill.Principal, id, version, text string) {
	t.Helper()
	u := musttest.Get(h.uploads.Begin(p))(t)
	defer u.Close()
	module := musttest.Get(u.File())(t)
	defer module.Close()
	musttest.Do(t, os.WriteFile(module.Name(), says(text, 0), 0o600))
	parts := admission.Source{Module: module, Manifest: []byte(manifestOf(id, version, wasiEntry))}
	musttest.Get(u.Admit(t.Context(), parts, false))(t)
}

// A script in Python, uploaded and called: as it was admitted, and not as somebody
// makes it on the disk (U09).
func TestUploadedScript(t *testing.T) {
	s := settings(t, nil)
	hosttest.Runtimes(t, "../..", s.StateDir)
	if _, err := os.Stat(filepath.Join(s.StateDir, "runtimes", "slim", "python.wasm")); err != nil || testing.Short() {
		t.Skip("the Python runtime is not here (openskill runtime install slim), or the test is to be short")
	}
	v := serve(t, s)
	const manifest = "type: wasm\nruntime: python\nentry: up.py\nlimits: {timeout_ms: 60000}\n"
	const script = "import json, sys, words\nprint(json.dumps({'said': words.SAID + json.load(sys.stdin)['skill_id']}))\n"
	first := v.upload(t, "", map[string][]byte{"archive": zipped(t, map[string]string{
		"skill.yaml": manifestOf("up", "1.0.0", manifest), "up.py": script, "words.py": "SAID = 'one '\n",
	})})
	expect(t, "the upload", first, "201 1.0.0 disabled")
	expect(t, "enabling", v.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	v.await(t, "warmed up", "wasm:python") // enabling it has begun that
	expect(t, "a call", v.call(t, "up"), `200 {"said":"one up"}`)
	expect(t, "the next upload", v.upload(t, "", map[string][]byte{"archive": zipped(t, map[string]string{
		"skill.yaml": manifestOf("up", "1.1.0", manifest), "up.py": script, "words.py": "SAID = 'two '\n",
	})}), "201 1.1.0 disabled")
	expect(t, "enabling it", v.act(t, "up", "enable", ""), "200 1.1.0 enabled")
	expect(t, "a call of it", v.call(t, "up"), `200 {"said":"two up"}`)
	expect(t, "going back", v.act(t, "up", "rollback", ""), "200 1.0.0 enabled")
	expect(t, "a call of the first", v.call(t, "up"), `200 {"said":"one up"}`)

	// What its scripts need that the sandbox has not stands in the report, and refuses nothing.
	a := v.upload(t, "?dry_run=true", map[string][]byte{"archive": zipped(t, map[string]string{
		"skill.yaml": manifestOf("up", "1.2.0", manifest), "up.py": "import json\nimport subprocess\nsubprocess.run(['git'])\nimport requests\n",
	})})
	said, _ := json.Marshal(a.Report["preflight"])
	if a.Status != 200 || !strings.Contains(string(said), "git is not there") || !strings.Contains(string(said), "requests") || !strings.Contains(string(said), `"line":3`) {
		t.Errorf("%s: %s", a.got(), said)
	}

	file := filepath.Join(uploadsDir(s.StateDir), "t-local", strings.TrimPrefix(first.Digest, "sha256:"), "words.py")
	musttest.Do(t, errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("SAID = 'bad '\n"), 0o600)))
	if a := v.call(t, "up"); a.got() != "404 NOT_FOUND" || !strings.Contains(a.Error.Message, "still being fetched") {
		t.Errorf("a call after its file was changed: %s %+v", a.got(), a.Error)
	}
	soon(t, "a call when its files are back", `200 {"said":"one up"}`, func() answer { return v.call(t, "up") })
}
