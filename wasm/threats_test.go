package wasm_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/wasmtest"
)

// judged is a module and the verdict that it must get.
type judged struct {
	module []byte
	want   check.Code
}

// threats are the hostile modules of the list of threats, by their numbers.
func threats() map[string][]judged {
	raw := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			panic(err)
		}
		return b
	}
	command := func(c wasmtest.Code) []byte {
		b := wasmtest.New()
		b.Memory(1)
		b.Command(c)
		return b.Bytes()
	}
	many := func(n int) []byte {
		b := wasmtest.New()
		for range n {
			b.Func(nil, nil, nil, "")
		}
		return b.Bytes()
	}
	branches := func(n int) wasmtest.Code {
		return wasmtest.Get(0) + wasmtest.Code(binary.AppendU32([]byte{0x0e}, uint32(n))) + wasmtest.Repeat(n+1, "\x00")
	}
	custom := func(size int) []byte {
		b := wasmtest.New()
		b.Custom(".debug_info", make([]byte, size))
		return b.Bytes()
	}
	importing := func(module, name string, params ...binary.ValType) []byte {
		b := wasmtest.New()
		b.ImportFunc(module, name, params, nil)
		return b.Bytes()
	}
	memory := wasmtest.New()
	memory.ImportMemory("tenantA", "memory")
	table := wasmtest.New()
	table.Table(0xffffffff)

	// Package check cuts at every byte; here is every third.
	var cut []judged
	whole := importing("wasi_snapshot_preview1", "proc_exit", binary.I32)
	for n := 0; n < len(whole); n += 3 {
		if !sectionEnds(whole)[n] {
			cut = append(cut, judged{whole[:n], check.InvalidModule})
		}
	}
	var bombs []judged
	for _, c := range wasmtest.Bombs() {
		bombs = append(bombs, judged{c.Module, c.Refused})
	}
	var disguised []judged
	for _, c := range wasmtest.Disguised() {
		disguised = append(disguised, judged{c.Module, c.Refused})
	}
	var features []judged
	for _, module := range [][]byte{
		raw("0061736d0d000100"),                    // a component
		raw("0061736d010000000503010400"),          // a 64-bit memory
		raw("0061736d01000000050401030101"),        // a shared memory
		raw("0061736d01000000" + "0105015f017f00"), // structures
		command("\x41\x00\xfe\x10\x02\x00\x1a"),    // atomics
		command("\xfd\x80\x02"),                    // relaxed vectors
		command("\xfc\x13"),                        // wide arithmetic
		command("\xfb\x00\x00"),                    // garbage collection
		command("\x14\x00"),                        // typed references
		command("\xe0\x00"),                        // stack switching
		command("\x12\x00"),                        // tail calls
		command("\x06\x40\x0b"),                    // exceptions of old
		command("\x3f\x01\x1a"),                    // several memories
	} {
		features = append(features, judged{module, check.FeatureDisabled})
	}
	return map[string][]judged{
		"W01 imports":         {{raw("0061736d010000000205ffffffff0f"), check.InvalidModule}},
		"W02 exports":         {{raw("0061736d010000000705ffffffff0f"), check.InvalidModule}},
		"W03 types":           {{raw("0061736d010000000105ffffffff0f"), check.InvalidModule}},
		"W04 parameters":      {{raw("0061736d0100000001070160ffffffff0f"), check.InvalidModule}},
		"W05 names":           {{raw("0061736d01000000000c046e616d650105ffffffff0f"), check.InvalidModule}},
		"W06 locals":          {{raw("0061736d01000000010401600000030201000a0a010801ffffffff0f7e0b"), check.ModuleTooComplex}},
		"W07 nested blocks":   {{command(wasmtest.Repeat(1_000_000, "\x02\x40") + wasmtest.Repeat(1_000_000, "\x0b")), check.ModuleTooComplex}},
		"W08 br_table":        {{command(branches(1_000_000)), check.ModuleTooComplex}},
		"W09 bombs":           bombs,
		"W10 cut":             cut,
		"W11 functions":       {{many(500_000), check.ModuleTooComplex}},
		"W12 custom sections": {{custom(60 << 20), check.ModuleTooComplex}},
		"W13 features":        features,
		"W14 imports":         {{importing("env", "system", binary.I32), check.ImportDenied}, {importing("wasi_snapshot_preview1", "proc_exit", binary.I64), check.ImportDenied}, {memory.Bytes(), check.ImportDenied}},
		"W15 tables":          {{table.Bytes(), check.TableLimit}},
		"W17 disguised":       disguised,
	}
}

// sectionEnds are the places where a module may be cut and stay one, as far as
// the decoder can tell.
func sectionEnds(b []byte) map[int]bool {
	ends := map[int]bool{8: true}
	for at := 8; at < len(b); at += 2 + int(b[at+1]) { // sections of this module are shorter than 128 bytes
		ends[at] = true
	}
	return ends
}

// TestThreats judges every hostile module in a process of its own, as
// "openskill module check" does: within a second and 256 MiB each.
func TestThreats(t *testing.T) {
	oneGoroutine(t)
	for name, cases := range threats() {
		t.Run(name, func(t *testing.T) {
			var longest time.Duration
			var most int
			for i, c := range cases {
				path := filepath.Join(t.TempDir(), "module.wasm")
				musttest.Do(t, os.WriteFile(path, c.module, 0o600))
				got := judgeAlone(t, path)
				if got.Code != c.want {
					t.Errorf("module %d of %d bytes: %s %s, want %s", i, len(c.module), got.Code, got.Message, c.want)
				}
				if strings.Contains(got.Message, "/") || len(got.Message) > 512 {
					t.Errorf("module %d: %s", i, got.Message)
				}
				if got.Peak > 256<<10 || got.Took > time.Second {
					t.Errorf("module %d of %d bytes: %v, %d MiB", i, len(c.module), got.Took, got.Peak>>10)
				}
				longest, most = max(longest, got.Took), max(most, got.Peak)
			}
			t.Logf("%d modules, at most %v and %d MiB", len(cases), longest, most>>10)
		})
	}
}

func judgeAlone(t *testing.T, path string) verdict {
	t.Helper()
	cmd := child(t, "check", path)
	out := musttest.Get(cmd.Output())(t)
	var v verdict
	musttest.Do(t, json.Unmarshal(out, &v))
	// Where others have the processors, the time that went by says little.
	v.Took = min(v.Took, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return v
}

// verdict is what the process that checks one module tells.
type verdict struct {
	Code    check.Code
	Message string
	Took    time.Duration
	Peak    int // KiB of memory that the process had at most; 0 where that is not known
}

// checkFile judges one module and prints a verdict.
func checkFile(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	began := time.Now()
	report, _ := wasm.Check(b, nil)
	v := verdict{Took: time.Since(began), Peak: peakMemory()}
	if report.Error != nil {
		v.Code, v.Message = report.Error.Code, report.Error.Message
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

// peakMemory is the most memory that this process had, in KiB. What the system
// tells its parent would be the parent's own, from before the program was loaded.
func peakMemory() int {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib
		}
	}
	return 0
}
