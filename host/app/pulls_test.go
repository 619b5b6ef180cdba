package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/admission"
	"openskill/host/admission/admissiontest"
	"openskill/host/admission/share"
	skills "openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A tenant has the host pull: signed by whom the policy names, from where the operator
// allows, never an older version than the ones it has; and what comes is an upload.
func TestPulledUploads(t *testing.T) {
	inner := admissiontest.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/secret/") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "http://")
	var asked int
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	key := musttest.Get(share.GenerateKey())(t)
	limits := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1}
	admission := musttest.Get(admission.New(admission.Options{Registry: skills.Options{Defaults: limits, Caps: limits}, Checker: moduleChecker{}, Agent: ReadUpload(skills.Options{Defaults: limits, Caps: limits})}))(t)
	carrier := musttest.Get(share.New(share.Options{Admission: admission}))(t)
	remote := share.NewRemote(share.RemoteOptions{})
	t.Cleanup(remote.Close)
	// push pushes a script, signed or not.
	push := func(repository, id, version, manifest string, signed bool) {
		t.Helper()
		folder := filepath.Join(t.TempDir(), id)
		musttest.Do(t, os.Mkdir(folder, 0o700))
		files := map[string]string{"skill.yaml": manifestOf(id, version, manifest), "m.mjs": "console.log('{}')\n", "m.py": ""}
		if manifest == "" {
			files = map[string]string{"SKILL.md": "---\nname: " + id + "\ndescription: Notes.\nmetadata: {version: \"" + version + "\"}\n---\nText.\n"}
		}
		for name, text := range files {
			musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		}
		p, err := carrier.Pack(t.Context(), folder, t.TempDir())
		if err == nil && signed {
			var sig []byte
			if sig, err = share.Sign(key, p.Statement); err == nil {
				err = os.WriteFile(folder+share.SignatureExt, sig, 0o600)
			}
			if err == nil {
				p, err = carrier.Pack(t.Context(), folder, t.TempDir())
			}
		}
		musttest.Do(t, err)
		ref, err := share.ParseReference(at + "/" + repository)
		if err == nil {
			_, err = carrier.Push(t.Context(), remote, ref, p, share.PushOptions{})
		}
		musttest.Do(t, err)
	}
	const script = "type: wasm\nruntime: javascript\nentry: m.mjs\n"
	push("acme/a", "a", "1.0.0", script, true)
	push("acme/a", "a", "0.9.0", script, true)
	push("acme/a", "a", "1.1.0", script, true)
	push("acme/plain", "plain", "1.0.0", script, false)
	push("acme/other", "other", "1.0.0", script, true)
	push("acme/note", "note", "1.0.0", "", true)
	push("acme/native", "a-native", "1.0.0", "type: cli\nruntime: python\nentry: m.py\n", true)

	policy := filepath.Join(t.TempDir(), "trust.yaml")
	text := fmt.Sprintf("publishers:\n  - {name: acme, keys: [%q], skills: [a, a-native, quick, note], trust: trusted}\n", key.Public())
	musttest.Do(t, os.WriteFile(policy, []byte(text), 0o600))
	v := serve(t, settings(t, map[string]string{"pull-hosts": "r.example.com, " + at, "trust-policy": policy}))
	pull := func(query, body string) answer {
		return v.do(t, "POST", "/skills"+query, "application/json", []byte(body))
	}
	ref := func(name string) string { return fmt.Sprintf(`{"reference": %q}`, at+"/"+name) }
	expect(t, "a dry run", pull("?dry_run=true", ref("acme/a:1.0.0")), "200 1.0.0 dry_run")
	first := pull("", ref("acme/a:1.0.0"))
	if expect(t, "a pull", first, "201 1.0.0 disabled"); first.Report["verdict"] != "accepted" {
		t.Errorf("%+v", first.Report)
	}
	expect(t, "the same again", pull("", ref("acme/a:1.0.0")), "409 CONFLICT")
	expect(t, "an older one", pull("", ref("acme/a:0.9.0")), "409 DOWNGRADE_REFUSED")
	expect(t, "the newest, enabled", pull("", fmt.Sprintf(`{"reference": %q, "enable": true}`, at+"/acme/a")), "201 1.1.0 enabled")
	expect(t, "one in between", pull("", ref("acme/a:1.0.0")), "409 DOWNGRADE_REFUSED")
	expect(t, "an Agent Skill", pull("", fmt.Sprintf(`{"reference": %q, "enable": true}`, at+"/acme/note")), "201 1.0.0 enabled")
	if a := v.do(t, "GET", "/agent-skills/note", "", nil); a.Status != 200 || a.Version != "1.0.0" {
		t.Errorf("the Agent Skill: %+v", a)
	}
	expect(t, "unsigned", pull("", ref("acme/plain")), "403 SIGNATURE_MISSING")
	expect(t, "not the publisher's", pull("", ref("acme/other")), "403 PUBLISHER_DENIED")
	expect(t, "native, though the publisher is trusted", pull("", ref("acme/native")), "422 INVALID_MANIFEST")
	expect(t, "not there", pull("", ref("acme/none")), "404 NOT_FOUND")
	expect(t, "what the registry keeps from this host", pull("", ref("acme/secret/a")), "502 TOOL_INVOCATION_ERROR")
	expect(t, "no reference", pull("", `{"reference": "here"}`), "400 INVALID_ARGUMENT")
	expect(t, "a host that is not allowed", pull("", fmt.Sprintf(`{"reference": %q}`, strings.TrimPrefix(elsewhere.URL, "http://")+"/a")), "403 NETWORK_DENIED")
	expect(t, "an address of this machine", pull("", `{"reference": "169.254.169.254/a"}`), "403 NETWORK_DENIED")
	if asked > 0 {
		t.Errorf("another host was asked %d times", asked)
	}
	if a := v.do(t, "GET", "/skills/a?version=1.1.0", "", nil); a.Status != 200 || a.Digest == "" {
		t.Errorf("%+v", a)
	}

	closed := serve(t, settings(t, nil))
	expect(t, "a host that pulls nothing", closed.do(t, "POST", "/skills", "application/json", []byte(ref("acme/a"))), "403 FORBIDDEN")
	musttest.Do(t, os.WriteFile(policy, []byte("publisher: []\n"), 0o600))
	h, err := Open(settings(t, map[string]string{"pull-hosts": at, "trust-policy": policy}), &Options{Mode: Serving})
	if err == nil || !strings.Contains(err.Error(), `unknown key "publisher"`) {
		t.Errorf("a wrong policy: %v", err)
	}
	if h != nil {
		_ = h.Close()
	}
}
