package replay

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func aRecording() *Recording {
	return &Recording{
		Started: records.Started{
			ExecutionID: "0190a1b2-0000-7000-8000-000000000001", Tenant: "acme", Principal: "robot", Skill: "echo", Version: "0.1.0",
			Digest: "sha256:ab", Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
		},
		Runner: skill.WasmWASI, Entry: "echo.wasm", Input: []byte("{ \"text\":\t\"<é>\" }"),
		Limits:  Limits{Timeout: 15*time.Second + 1, Memory: 64 << 20, Fuel: 1, Output: 2, Scratch: 3},
		Granted: Granted{Data: true, Scratch: true, Key: "k", Env: []Variable{{Name: "A", Hash: "00"}, {Name: "B"}}},
		Seen:    []skill.Seen{{Path: "a", Kind: skill.SeenFile, Size: 5, SHA256: "00"}, {Path: "b", Kind: skill.SeenMissing}}, More: true,
		End:   End{Success: true, Data: []byte(`{"a": [1, 2.0]}`), Artifacts: []records.ArtifactInfo{{Name: "f", Size: 1, SHA256: "00"}}, Fuel: 7},
		Draws: []byte("draws of a runner, in its own form \x00\xff"),
	}
}

func encoded(t testing.TB, r *Recording) ([]byte, int64) {
	t.Helper()
	body, size, err := r.encode(1 << 20)
	musttest.Do(t, err)
	return body, int64(size)
}

// TestRecordingComesBack holds that what is kept is what is read, of calls and of scripts,
// and that a bound holds to the byte.
func TestRecordingComesBack(t *testing.T) {
	script := aRecording()
	script.Started.Script, script.Input, script.Script = "scripts/a.py", nil, &Line{Args: []string{"", "-x"}, Stdin: []byte("\x00in")}
	script.End = End{Code: skill.GuestExit, Message: "it ended with 1"}
	for _, want := range []*Recording{aRecording(), script} {
		body, size := encoded(t, want)
		got, err := decode(body, size)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		if _, n, err := want.encode(uint64(size)); err != nil || int64(n) != size {
			t.Errorf("%d bytes of %d: %v", n, size, err)
		}
		if b, n, err := want.encode(uint64(size) - 1); !errors.Is(err, errTooLarge) || b != nil || int64(n) != size {
			t.Errorf("%d bytes of %d: %v", n, size-1, err)
		}
	}
}

// BenchmarkEncode is what a small recording costs the call that it is of.
func BenchmarkEncode(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := aRecording().encode(1 << 20); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDamagedRecording holds that a recording that was cut or changed, at any byte, or is
// said to have another size, is refused.
func TestDamagedRecording(t *testing.T) {
	body, size := encoded(t, aRecording())
	refused := func(what string, at int, b []byte, size int64) {
		t.Helper()
		if r, err := decode(b, size); !errors.Is(err, ErrDamaged) || r != nil {
			t.Errorf("%s at %d: %+v, %v", what, at, r, err)
		}
	}
	plain := &bytes.Buffer{}
	musttest.Get(plain.ReadFrom(flate.NewReader(bytes.NewReader(body))))(t)
	for i := range body {
		refused("cut", i, body[:i], size)
		for bit := range 8 {
			changed := bytes.Clone(body)
			changed[i] ^= 1 << bit
			if r, err := decode(changed, size); err == nil { // of some bits of its end nothing depends
				if diff := cmp.Diff(aRecording(), r); diff != "" {
					t.Errorf("changed at %d: %s", i, diff)
				}
			}
		}
	}
	for i := range plain.Bytes() {
		changed := bytes.Clone(plain.Bytes())
		changed[i] ^= 1
		for what, b := range map[string][]byte{"cut": plain.Bytes()[:i], "changed": changed} {
			if r, err := parse(b); !errors.Is(err, ErrDamaged) || r != nil {
				t.Errorf("%s at %d, before it was compressed: %+v, %v", what, i, r, err)
			}
		}
	}
	refused("longer", 0, append(bytes.Clone(body), 0), size)
	for _, other := range []int64{0, -1, size - 1, size + 1, ceiling + 1, 1 << 62} {
		refused("another size", int(other), body, other)
	}
}

func packed(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, 1)
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	musttest.Do(t, err)
	return out.Bytes()
}

// sealed is a recording with this header, whose digest is right.
func sealed(header, draws string) []byte {
	b := append([]byte(mark), byte(len(header)&0x7f|0x80), byte(len(header)>>7))
	b = append(append(b, header...), draws...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// TestForgedRecording holds what a recording may not say, though its digest is right.
func TestForgedRecording(t *testing.T) {
	good := `{"started":{"execution_id":"a"},"runner":"wasm:wasi"}`
	long := good + strings.Repeat(" ", 200)
	try := func(header, draws string) error {
		_, err := parse(sealed(header, draws))
		return err
	}
	musttest.Do(t, try(long, "d"))
	for name, c := range map[string][2]string{
		"no draws":              {long, ""},
		"no execution":          {strings.Replace(long, `"a"`, `""`, 1), "d"},
		"a key that is unknown": {strings.Replace(long, `"runner"`, `"runs"`, 1), "d"},
		"two values":            {long + "{}", "d"},
		"a script without one":  {strings.Replace(long, `"a"`, `"a","script":"x"`, 1), "d"},
		"no JSON":               {strings.Repeat("x", 200), "d"},
	} {
		if err := try(c[0], c[1]); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Much that is compressed to little is not unpacked.
	bomb := packed(t, make([]byte, 64<<20))
	if _, err := decode(bomb, 1000); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// FuzzRecording reads anything, as it is and with a right digest: it never panics, and
// takes nothing that could not be replayed.
func FuzzRecording(f *testing.F) {
	body, _ := encoded(f, aRecording())
	plain := &bytes.Buffer{}
	musttest.Get(plain.ReadFrom(flate.NewReader(bytes.NewReader(body))))(f)
	f.Add(plain.Bytes()[:plain.Len()-sha256.Size])
	f.Add([]byte(mark))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decode(b, int64(len(b)))
		sum := sha256.Sum256(b)
		b = append(bytes.Clone(b), sum[:]...)
		r, err := parse(b)
		if err != nil {
			return
		}
		if r.Started.ExecutionID == "" || len(r.Draws) == 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestFirstDifference holds where two values differ first.
func TestFirstDifference(t *testing.T) {
	for _, c := range []struct{ then, now, want string }{
		{`{"a":1,"b":[1,2]}`, "{ \"b\" : [1, 2],\n \"a\": 1 }", ""},
		{`{"a":1}`, `{"a":2}`, "data at /a: then 1, now 2"},
		{`{"a":1}`, `{"a":1.0}`, "data at /a: then 1, now 1.0"},
		{`{"a":1}`, `{"a":"1"}`, `data at /a: then 1, now "1"`},
		{`{"a":null}`, `{"a":{}}`, "data at /a: then null, now {}"},
		{`{"a":null}`, `{}`, "data at /a: then null, now none"},
		{`{}`, `{"x":[]}`, "data at /x: then none, now []"},
		{`{"b":1,"a":1}`, `{"b":2,"a":2}`, "data at /a: then 1, now 2"},
		{`{"a":[1,2,3]}`, `{"a":[1,2]}`, "data at /a/2: then 3, now none"},
		{`{"a":[1]}`, `{"a":[1,{"x":1}]}`, `data at /a/1: then none, now {"x":1}`},
		{`{"a/b":{"~":[{"c":true}]}}`, `{"a/b":{"~":[{"c":false}]}}`, "data at /a~1b/~0/0/c: then true, now false"},
		{`{"":1}`, `{"":2}`, "data at /: then 1, now 2"},
		{`[1]`, `{"a":1}`, `data: then [1], now {"a":1}`},
		{`{"a":1}`, `no JSON`, `data: then {"a":1}, now no JSON`},
		{`{"a":"` + strings.Repeat("x", 1000) + `"}`, `{"a":1}`, `data at /a: then "` + strings.Repeat("x", 100)},
	} {
		r := &Report{}
		r.compareData([]byte(c.then), []byte(c.now))
		got := ""
		if len(r.Differences) > 0 {
			got = r.Differences[0].String()
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || len(got) > 1000 {
			t.Errorf("%.80s and %.80s: %.200s; want %s", c.then, c.now, got, c.want)
		}
	}
}

// TestEnds holds what of an end is compared.
func TestEnds(t *testing.T) {
	then := End{Success: true, Data: []byte(`{}`), Fuel: 10, Artifacts: []records.ArtifactInfo{{Name: "a", Size: 1, SHA256: "00"}}}
	failed := End{Code: skill.Trap, Message: "m", Fuel: 10}
	for _, c := range []struct {
		then   End
		change func(e *End)
		want   string
	}{
		{then, func(*End) {}, ""},
		{failed, func(*End) {}, ""},
		{then, func(e *End) { e.Fuel++ }, "fuel: then 10, now 11"},
		{then, func(e *End) { e.Artifacts = nil }, "artifacts 1: then a of 1 bytes, sha256 00, now none"},
		{then, func(e *End) { e.Artifacts = []records.ArtifactInfo{{Name: "a", Size: 1, SHA256: "01"}} }, "artifacts 1: then a of 1 bytes, sha256 00, now a of 1 bytes, sha256 01"},
		{then, func(e *End) { *e = failed; e.Artifacts = then.Artifacts }, "status: then success, now failure; code: then none, now TRAP; message: then none, now m"},
		{failed, func(e *End) { e.Code = skill.FuelExhausted }, "code: then TRAP, now FUEL_EXHAUSTED"},
		{failed, func(e *End) { e.Message = "n\x1b[31m" }, "message: then m, now n[31m"},
	} {
		now := c.then
		c.change(&now)
		r := &Report{}
		r.compareEnds(&c.then, now)
		var all []string
		for _, d := range r.Differences {
			all = append(all, d.String())
		}
		if got := strings.Join(all, "; "); got != c.want {
			t.Errorf("%s; want %s", got, c.want)
		}
	}
}

// TestLook holds what is said of things in the data folder that nobody should wait for or
// follow.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	root := musttest.Get(os.OpenRoot(dir))(t)
	defer root.Close()
	file := skill.Seen{Path: "a", Kind: skill.SeenFile, Size: 1, SHA256: strings.Repeat("0", 64)}
	for name, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"nothing":     {func(string) error { return nil }, "nothing of that name"},
		"a folder":    {func(p string) error { return os.Mkdir(p, 0o700) }, "a folder"},
		"a link out":  {func(p string) error { return os.Symlink("/etc/passwd", p) }, "cannot read its attributes"},
		"a loop":      {func(p string) error { return os.Symlink("a", p) }, "cannot read its attributes"},
		"a pipe":      {pipe, "it is neither a file nor a folder"},
		"another one": {func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) }, "a file of 1 bytes, sha256 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.make(filepath.Join(dir, "a")); err != nil {
				t.Skip(err)
			}
			if now, same := look(root, file); same || now != c.want {
				t.Errorf("%v, %s; want %s", same, now, c.want)
			}
			_ = os.Remove(filepath.Join(dir, "a"))
		})
	}
	if now, same := look(root, skill.Seen{Path: "../x", Kind: skill.SeenMissing}); same {
		t.Error(now)
	}
}

// TestBashkit2282RefusesBombs is Bashkit #2282, where a saved state that unpacks to far more
// than it says was unpacked before a limit was looked at.
func TestBashkit2282RefusesBombs(t *testing.T) {
	const unpacked = 256 << 20
	var bomb bytes.Buffer
	w := musttest.Get(flate.NewWriter(&bomb, flate.BestSpeed))(t)
	for range unpacked >> 20 {
		musttest.Get(w.Write(make([]byte, 1<<20)))(t)
	}
	musttest.Do(t, w.Close())
	for _, says := range []int64{0, 1000, 1 << 20, ceiling + 1, 1 << 62} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decode(bomb.Bytes(), says)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrDamaged) || got > 16<<20 {
			t.Errorf("%d bytes that unpack to %d and say %d: %v, and the host allocates %d bytes", bomb.Len(), unpacked, says, err, got)
		}
	}
}
