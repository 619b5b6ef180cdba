package soak

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/lab/load"
)

func TestMetric(t *testing.T) {
	t.Parallel()
	text := "# HELP go_goroutines Number.\n# TYPE go_goroutines gauge\ngo_goroutines 31\ngo_goroutines_x 5\ngo_memstats_next_gc_bytes 4.194304e+06\nbad x\nneg -3\n"
	for name, want := range map[string]float64{"go_goroutines": 31, "go_memstats_next_gc_bytes": 4194304, "bad": -1, "neg": -1, "none": -1} {
		if got := metric([]byte(text), name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := metric(bytes.Repeat([]byte("x"), 3<<20), "x"); got != -1 {
		t.Errorf("a line without an end: %v", got)
	}
}

// TestMix: every kind comes as often as its weight, and its answers are looked at.
func TestMix(t *testing.T) {
	t.Parallel()
	kinds := Mix()
	o, seen := NewOrder(kinds), map[int]int{}
	for n := range int64(1000) {
		seen[o.Of(n)]++
	}
	for i, k := range kinds {
		if seen[i] != k.Weight {
			t.Errorf("%s comes %d times in 1000, want %d", k.Name, seen[i], k.Weight)
		}
	}
	echo := &kinds[0]
	_, want := echo.Request(7)
	good := &load.Answer{Status: 200, Success: true, Body: []byte(`{"data":{"echoed":"call 7"}}`)}
	if wrong := echo.Wrong(good, nil, want); wrong != "" {
		t.Error(wrong)
	}
	fuel := &kinds[6]
	for name, wrong := range map[string]string{
		"another's answer":         echo.Wrong(&load.Answer{Status: 200, Success: true, Body: []byte(`{"data":{"echoed":"call 8"}}`)}, nil, want),
		"refused":                  echo.Wrong(&load.Answer{Status: 429, Code: "RATE_LIMITED"}, nil, want),
		"no answer":                echo.Wrong(&load.Answer{Code: load.NoAnswer}, errors.New("late"), want),
		"a success that must fail": fuel.Wrong(&load.Answer{Status: 200, Success: true, Body: []byte("fuel")}, nil, "fuel"),
		"another failure":          fuel.Wrong(&load.Answer{Status: 500, Code: "INTERNAL", Body: []byte("fuel")}, nil, "fuel"),
	} {
		if wrong == "" {
			t.Errorf("%s passes", name)
		}
	}
}

// TestRunEnds: a run ends after its calls, counts wrong answers, and shows the first few.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes are looked at on Linux only")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = w.Write([]byte("go_goroutines 12\ngo_memstats_next_gc_bytes 8\n"))
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	target, err := load.Open(server.URL, load.Options{Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	r := &Run{Target: target, PID: os.Getpid(), State: t.TempDir(), Clients: 2, Duration: time.Minute, Calls: 50, Every: 10 * time.Millisecond, Kinds: Mix()}
	out, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out.Calls != 50 || out.Wrong != 50 || len(out.Said) != mostSaid || out.Ended || !out.Goroutine || len(out.Samples) == 0 || out.Samples[0].Goroutines != 12 {
		t.Errorf("%+v", out)
	}
	var sum int64
	for _, k := range out.Kinds {
		sum += k.Calls
	}
	if sum != 50 {
		t.Errorf("the kinds together are %d calls", sum)
	}
	for _, row := range out.Rows() {
		if row.Growing || row.Judged || !row.Told {
			t.Errorf("%+v", row)
		}
	}
	if text := out.Markdown("openskill bench soak"); !strings.Contains(text, "| descriptors of the host |") || !strings.Contains(text, "too short to judge") {
		t.Error(text)
	}
	r.PID = 1 << 30
	if _, err := r.Do(t.Context()); err == nil {
		t.Error("no such process: want an error")
	}
}

// TestFolders: what a host needs is there, what a skill's limit a minute is not, and a
// folder that cannot be made whole is removed.
func TestFolders(t *testing.T) {
	t.Parallel()
	state, skills := t.TempDir(), filepath.Join("..", "..", "skills")
	if err := os.MkdirAll(filepath.Join(state, "runtimes", "slim"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "runtimes", "slim", "x"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := MakeFolders(state, skills)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(f.State, "runtimes", "slim", "x"), filepath.Join(f.Data, "app.log"), filepath.Join(f.Skills, Spin, "spin.wasm")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	manifest, err := os.ReadFile(filepath.Join(f.Skills, "calculator", "skill.yaml"))
	if err != nil || strings.Contains(string(manifest), "rate_limit_per_minute") || !strings.Contains(string(manifest), "estimated_tokens") {
		t.Errorf("%v\n%s", err, manifest)
	}
	if err := os.RemoveAll(f.Root); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeFolders(state, t.TempDir()); err == nil {
		t.Error("no skills: want an error")
	}
	if left, _ := filepath.Glob(filepath.Join(state, "soak-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
