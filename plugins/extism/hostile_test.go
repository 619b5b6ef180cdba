package extism

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/binary"
	asm "openskill/wasm/wasmtest"
)

// pluginOf writes a module as a skill's only file.
func pluginOf(t testing.TB, module []byte, entry string) *skill.Call {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "m.wasm")
	old := time.Now().Add(-time.Hour) // for its stamp to tell every change
	musttest.Do(t, os.WriteFile(path, module, 0o600))
	musttest.Do(t, os.Chtimes(path, old, old))
	return &skill.Call{SkillID: "hostile", Folder: dir, Entry: entry, Digest: "sha256:" + filepath.Base(dir), Limits: runnertest.DefaultLimits()}
}

// Every case that the engine is held to is one of plug-ins too, with its function named:
// the same limits end it with the same codes.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("one guest at a time, and minutes of compiling under the race detector")
	}
	codes := map[wasm.Ended]skill.Code{
		wasm.Trapped: skill.Trap, wasm.OutOfFuel: skill.FuelExhausted, wasm.OutOfTime: skill.Timeout, wasm.OutOfMemory: skill.MemoryLimit,
		wasm.OutOfTable: skill.TableLimit, wasm.OutOfStack: skill.StackLimit, wasm.OutputOverflow: skill.OutputLimit,
	}
	r := New(engine(t), nil)
	defer r.Close()
	tried := 0
	for _, c := range asm.Hostile() {
		if c.Refused == "" && !strings.Contains(string(c.Module), "_start") {
			continue // its start function is the case; a plug-in has a function beside it: TestEntries
		}
		tried++
		t.Run(c.Name, func(t *testing.T) {
			call := pluginOf(t, c.Module, "m.wasm#_start")
			call.Limits = skill.Limits{
				Timeout: cmp.Or(c.Limits.Timeout, 15*time.Second), Memory: cmp.Or(c.Limits.Memory, 256<<20),
				Fuel: cmp.Or(c.Limits.Fuel, 10_000_000_000), Output: uint64(cmp.Or(c.Limits.Output, 1<<20)), Scratch: 1 << 20, // not negative
			}
			if c.Stdin != nil {
				in, done := c.Stdin()
				defer done()
				if _, endless := in.(io.ByteReader); endless || c.Want == wasm.OutOfTime {
					t.Skip("a call's input is whole before it begins")
				}
				call.Stdin, _ = io.ReadAll(io.LimitReader(in, 1<<20))
			}
			reply := musttest.Get(runnertest.Do(t.Context(), r, call))(t)
			want := codes[c.Want]
			if c.Refused != "" {
				want = skill.Code(c.Refused)
			}
			if reply.Code != want || want == "" && reply.ExitCode != c.ExitCode {
				t.Errorf("ended with %q and exit code %d: %s; want %q and %d", reply.Code, reply.ExitCode, reply.Message, want, c.ExitCode)
			}
			if want != "" && (reply.Message == "" || len(reply.Message) > skill.MaxMessage || strings.Contains(reply.Message, call.Folder)) {
				t.Errorf("message %q", reply.Message)
			}
		})
	}
	if tried < 40 {
		t.Errorf("%d cases were tried", tried)
	}
	canary := pluginOf(t, answering("ok"), "m.wasm")
	if reply, err := runnertest.Do(t.Context(), r, canary); err != nil || string(reply.Stdout) != "ok      " {
		t.Errorf("the next call: %+v, %v", reply, err)
	}
}

// answering is a plug-in whose invoke answers with up to eight letters.
func answering(s string) []byte {
	b := asm.New()
	alloc, store, set := b.ImportPlugin("alloc"), b.ImportPlugin("store_u64"), b.ImportPlugin("output_set")
	v := int64(0)
	for i := range 8 {
		c := byte(' ')
		if i < len(s) {
			c = s[i]
		}
		v |= int64(c) << (8 * i)
	}
	b.Export("invoke", b.Func(nil, nil, []binary.LocalGroup{{Count: 1, Type: asm.TypeI64}},
		asm.I64(8)+asm.Call(alloc)+asm.Set(0)+asm.Get(0)+asm.I64(v)+asm.Call(store)+asm.Get(0)+asm.I64(8)+asm.Call(set)))
	return b.Bytes()
}
