package dispatch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// FuzzGuest holds the door to its word whatever a guest prints: exactly one of data
// and error, only codes that a guest may say, and text that is fit to be shown.
func FuzzGuest(f *testing.F) {
	for _, s := range []string{
		`{"mean": 1}`, `{"success": true, "data": {"mean": 1}, "error": null}`, `{"success": false, "error": {"code": "TIMEOUT", "message": "m"}}`,
		`{"error": {"code": 404, "details": {"a": ["\u001b[0m", {"b": 1}]}}}`, `{"success": true, "data": []}`, `{"mean": "x"}`, `null`,
	} {
		f.Add(uint32(0), []byte(s), []byte("warning\n"))
		f.Add(uint32(1), []byte(s), []byte("Traceback /srv/x/y.py \x1b[31m"))
	}
	d, s := guestDoor(f)
	f.Fuzz(func(t *testing.T, exit uint32, stdout, stderr []byte) {
		c := &call{skill: s, reply: &skill.Reply{ExitCode: exit, Stdout: stdout, Stderr: stderr}}
		var err error
		c.outcome, err = d.read(s, c.reply, skill.Limits{Output: 1 << 20})
		r := d.result(c, err)
		if r.Success != (r.Error == nil) || r.Success != (r.Data != nil) {
			t.Fatalf("success %v, data %s, error %v", r.Success, r.Data, r.Error)
		}
		b, err := json.Marshal(r)
		musttest.Do(t, err)
		if r.Success {
			if _, err := strictjson.Decode(r.Data, maxOutputDepth, nil); err != nil || exit != 0 {
				t.Fatalf("exit %d, data %q: %v", exit, r.Data, err)
			}
			return
		}
		switch code := r.Error.Code; {
		case mayReport[code], code == skill.GuestExit && exit != 0, code == skill.InvalidOutput, code == skill.OutputLimit:
		default:
			t.Fatalf("code %s", code)
		}
		if r.Error.Status != r.Error.Code.Status() || r.Error.Message == "" || len(r.Error.Message) > 512 {
			t.Fatalf("error %s", b)
		}
		var e any
		musttest.Do(t, json.Unmarshal(b, &e))
		if text := unfit(e); text != "" {
			t.Fatalf("the answer holds %q: %s", text, b)
		}
	})
}

// unfit finds text that cleaning would change.
func unfit(v any) string {
	switch v := v.(type) {
	case string:
		if s := strings.TrimSpace(v); skill.CleanText(s, len(s)+8) != s {
			return v
		}
	case map[string]any:
		for key, e := range v {
			if bad := unfit(key) + unfit(e); bad != "" {
				return bad
			}
		}
	case []any:
		for _, e := range v {
			if bad := unfit(e); bad != "" {
				return bad
			}
		}
	}
	return ""
}

// guestDoor is a door and a skill to read outputs with.
func guestDoor(tb testing.TB) (*Dispatcher, *manifest.Skill) {
	tb.Helper()
	dir := tb.TempDir()
	musttest.Do(tb, os.WriteFile(filepath.Join(dir, "skill.yaml"), []byte(file), 0o600))
	one := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1}
	reg := musttest.Get(manifest.Open(manifest.Options{Roots: []manifest.Root{{Path: dir, Trust: skill.Trusted}}, Defaults: one, Caps: one}))(tb)
	s := musttest.Get(reg.Get("stats", ""))(tb)
	set := musttest.Get(NewSet())(tb)
	d := musttest.Get(New(Options{Skills: manifest.Shared{Registry: reg}, Runners: set}))(tb)
	return d, s
}
