package app

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm/wasmtest"
)

// complains is a module that writes to standard error, and nothing to standard output.
func complains() []byte {
	b := wasmtest.New()
	write := b.Import("fd_write")
	b.Memory(1)
	const text = "Traceback:\n  line 1\x1b[31m\n"
	b.Data(0, "\x08\x00\x00\x00"+string(rune(len(text)))+"\x00\x00\x00"+text)
	b.Command(wasmtest.I32(2) + wasmtest.I32(0) + wasmtest.I32(1) + wasmtest.I32(1032) + wasmtest.Call(write) + wasmtest.Drop)
	return b.Bytes()
}

// TestLogsOfARun: what a skill wrote to standard error in its worker can be read at its
// execution where the operator chose that, and is kept nowhere if nobody chose.
func TestLogsOfARun(t *testing.T) {
	for keep, want := range map[string]string{"": "", "failed": "Traceback:\n  line 1[31m", "none": ""} {
		flags := map[string]string{}
		if keep != "" {
			flags["keep-logs"] = keep
		}
		s := settings(t, flags)
		musttest.Do(t, os.WriteFile(filepath.Join(s.SkillsDir, "quick", "quick.wasm"), complains(), 0o600))
		v := serve(t, s)
		a := v.call(t, "quick")
		if a.Error == nil || a.Error.Code != skill.InvalidOutput {
			t.Fatalf("%+v", a)
		}
		req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, v.url+"/executions/"+a.Meta.ExecutionID, nil))(t)
		req.Close = true
		res, err := http.DefaultTransport.RoundTrip(req)
		musttest.Do(t, err)
		var e records.View
		musttest.Do(t, json.NewDecoder(res.Body).Decode(&e))
		res.Body.Close()
		if e.ID != a.Meta.ExecutionID || e.Logs != want {
			t.Errorf("kept %q: %+v has the logs %q, want %q", keep, e, e.Logs, want)
		}
		if err := v.stop(); err != nil {
			t.Error(err)
		}
	}
}
