package wasi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// web asks a server what a guest's request says, as it is.
type web struct {
	url   string
	asked atomic.Int32
}

func (w *web) For(*skill.Call) skill.Fetch {
	return func(ctx context.Context, request []byte) []byte {
		w.asked.Add(1)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(string(request)))
		if err != nil {
			return []byte(err.Error())
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return []byte("no answer")
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return b
	}
}

// counting answers each request with how many there were.
func counting() *httptest.Server {
	var n atomic.Int32
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, string(b)+" "+strconv.Itoa(int(n.Add(1))))
	}))
}

// TestReplay holds that programs of Go and Rust that look at all clocks and all chance do
// again what they did, on another runner: from an image, with a start-up of their own,
// and where they never read.
func TestReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a Go program")
	}
	e := engine(t)
	t.Run("Go", func(t *testing.T) {
		c := skillOf(t, built(t, "draws"))
		c.Grants = skill.Grants{Scratch: true, Env: []string{"ASK=what"}}
		c.Stdin = []byte("the input")
		replays(t, e, c, true)
		manyReplay(t, e, c)
		c.Args = []string{"silent"}
		replays(t, e, c, true)
	})
	t.Run("Rust", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "draws.wasm")
		cmd := exec.Command("rustc", "--target", "wasm32-wasip1", "-C", "opt-level=s", "-C", "panic=abort", "-C", "lto", "-C", "codegen-units=1",
			"-C", "strip=symbols", "-o", out, filepath.Join("testdata", "draws.rs"))
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("rustc for wasm32-wasip1 is needed: %v\n%s", err, b)
		}
		module := musttest.Get(os.ReadFile(out))(t)
		c := skillOf(t, module)
		c.Stdin = []byte("the input")
		replays(t, e, c, false)
		c.Grants.Scratch = true
		replays(t, e, c, false)
	})
}

func replays(t *testing.T, e *wasm.Engine, c *skill.Call, asks bool) {
	t.Helper()
	server := counting()
	defer server.Close()
	net := &web{url: server.URL}
	run := func(c skill.Call) *skill.Reply {
		t.Helper()
		r := New(e, &Options{Outgoing: net})
		defer r.Close()
		return musttest.Get(runnertest.Do(t.Context(), r, &c))(t)
	}
	recorded, again := *c, *c
	recorded.Record = 1 << 20
	then, other := run(recorded), run(recorded)
	asked := net.asked.Load()
	if then.Code != "" || then.ExitCode != 0 || then.Recording == nil || then.Recording.Draws == nil || asks != (asked == 4) {
		t.Fatalf("%d requests, %s %s %s, %+v", asked, then.Code, then.Message, then.Stderr, then.Recording)
	}
	if string(then.Stdout) == string(other.Stdout) {
		t.Error("two runs are alike, so this shows nothing")
	}
	server.Close()
	again.Replay = then.Recording.Draws
	now := run(again)
	if now.Differs != "" || string(now.Stdout) != string(then.Stdout) || string(now.Stderr) != string(then.Stderr) || now.Usage.Fuel != then.Usage.Fuel {
		t.Errorf("%q, %d units of %d\n%s%s\nthen\n%s%s", now.Differs, now.Usage.Fuel, then.Usage.Fuel, now.Stdout, now.Stderr, then.Stdout, then.Stderr)
	}
	if net.asked.Load() != asked {
		t.Error("a replay asked the network")
	}
	again.Replay = other.Recording.Draws
	if now = run(again); string(now.Stdout) != string(other.Stdout) || now.Differs != "" {
		t.Errorf("the other one: %q\n%s\nthen\n%s", now.Differs, now.Stdout, other.Stdout)
	}
}

// manyReplay has runs recorded on instances that have served others, some at once and
// some after an end that spoils theirs; each replays as it ran.
func manyReplay(t *testing.T, e *wasm.Engine, c *skill.Call) {
	t.Helper()
	r := New(e, nil)
	defer r.Close()
	data := t.TempDir()
	for i := range 20 {
		musttest.Do(t, os.WriteFile(filepath.Join(data, strconv.Itoa(i)), []byte{byte(i)}, 0o600))
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 5 {
				own := strconv.Itoa(5*i + j)
				recorded, again := *c, *c
				recorded.Record, recorded.Stdin, recorded.Grants.Data = 1<<20, []byte("read /data/"+own), data
				if j%3 == 1 {
					recorded.Limits.Fuel = 300_000
				}
				again.Stdin, again.Limits, again.Grants = recorded.Stdin, recorded.Limits, recorded.Grants
				then, err := runnertest.Do(t.Context(), r, &recorded)
				if err != nil || then.Recording == nil || then.Recording.Draws == nil {
					t.Errorf("%+v, %v", then, err)
					return
				}
				for _, s := range then.Recording.Seen {
					if s.Path != "." && s.Path != own || s.Path == own && (s.Size != 1 || s.SHA256 == "") {
						t.Errorf("the run that reads %s saw %+v", own, s)
					}
				}
				if n := len(then.Recording.Seen); n == 0 || n > 2 {
					t.Errorf("the run saw %d things", n)
				}
				again.Replay = then.Recording.Draws
				now, err := runnertest.Do(t.Context(), r, &again)
				if err != nil || now.Differs != "" || now.Code != then.Code || string(now.Stdout) != string(then.Stdout) || now.Usage.Fuel != then.Usage.Fuel {
					t.Errorf("run %d of %d: %s %q, %d units of %d, %v\n%s\nthen %s\n%s", j, i, now.Code, now.Differs, now.Usage.Fuel, then.Usage.Fuel, err, now.Stdout, then.Code, then.Stdout)
				}
			}
		})
	}
	wg.Wait()
}

// TestRecordedBound holds that a run which draws more than may be kept goes on, and its
// reply says why nothing was kept; and so does one that the clock ended.
func TestRecordedBound(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a Go program")
	}
	r := New(engine(t), nil)
	defer r.Close()
	c := skillOf(t, built(t, "draws"))
	c.Record = 300
	reply, err := runnertest.Do(t.Context(), r, c)
	if err != nil || reply.Code != "" || reply.Recording == nil || reply.Recording.Draws != nil || !strings.Contains(reply.Recording.Missing, "exceed 300 bytes") {
		t.Errorf("%+v, %v", reply, err)
	}
	c.Record = 1 << 20
	if reply, err = runnertest.Do(t.Context(), r, c); err != nil || reply.Recording.Draws == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	other := skillOf(t, []byte("\x00asm\x01\x00\x00\x00"))
	other.Replay = reply.Recording.Draws
	if reply, err = runnertest.Do(t.Context(), r, other); err != nil || reply.Code != skill.Conflict || !strings.Contains(reply.Differs, "the module") {
		t.Errorf("another module: %+v, %v", reply, err)
	}
	c.Replay, c.Record = []byte("OSKT but no recording"), 0
	if reply, err := runnertest.Do(t.Context(), r, c); skill.CodeOf(err) != skill.InvalidArgument || reply != nil {
		t.Errorf("%+v, %v", reply, err)
	}
	c.Replay = []byte{}
	if reply, err := runnertest.Do(t.Context(), r, c); skill.CodeOf(err) != skill.InvalidArgument || reply != nil {
		t.Errorf("an empty recording: %+v, %v", reply, err)
	}
}
