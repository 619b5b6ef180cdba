package wasi

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// command is a module whose _start has this body, and optionally more sections
// before its code.
func command(t testing.TB, body string, sections ...string) []byte {
	t.Helper()
	code := musttest.Get(hex.DecodeString(body))(t)
	text := "0061736d01000000" + "010401600000" + "03020100" + strings.Join(sections, "") +
		fmt.Sprintf("0a%02x01%02x", len(code)+2, len(code)) + body
	return musttest.Get(hex.DecodeString(text))(t)
}

const start = "070a01065f73746172740000" // the export _start

// skillOf writes a module as a skill's only file.
func skillOf(t testing.TB, module []byte) *skill.Call {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "m.wasm")
	musttest.Do(t, os.WriteFile(path, module, 0o600))
	aged(t, path)
	return &skill.Call{SkillID: "hostile", Folder: dir, Entry: "m.wasm", Digest: "sha256:" + filepath.Base(dir), Limits: runnertest.DefaultLimits()}
}

// aged makes a file old enough for its stamp to tell every change.
func aged(t testing.TB, path string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	musttest.Do(t, os.Chtimes(path, old, old))
}

// Each hostile module ends with its code, and the next call of another works.
func TestHostileModules(t *testing.T) {
	bytes := func(s string) []byte {
		return musttest.Get(hex.DecodeString(s))(t)
	}
	quick := skill.Limits{Timeout: 300 * time.Millisecond}
	for name, c := range map[string]struct {
		module []byte
		limits skill.Limits
		want   skill.Code
	}{
		"no module":            {[]byte("#!/bin/sh"), skill.Limits{}, skill.InvalidModule},
		"empty file":           {nil, skill.Limits{}, skill.InvalidModule},
		"W01 import count":     {bytes("0061736d010000000205ffffffff0f"), skill.Limits{}, skill.InvalidModule},
		"nothing to run":       {bytes("0061736d01000000"), skill.Limits{}, skill.InvalidModule},
		"W13 shared memory":    {command(t, "000b", "0504010301"+"01", start), skill.Limits{}, skill.FeatureDisabled},
		"W14 foreign import":   {bytes("0061736d01000000010401600000" + "020901" + "03656e76" + "0178" + "0000"), skill.Limits{}, skill.ImportDenied},
		"X02 another's memory": {bytes("0061736d01000000" + "0213" + "01" + "0774656e616e7441" + "066d656d6f7279" + "020001"), skill.Limits{}, skill.ImportDenied},
		"trap":                 {command(t, "00000b", start), skill.Limits{}, skill.Trap},
		"E01 loop, fuel":       {command(t, "0003400c000b0b", start), skill.Limits{Fuel: 1e6}, skill.FuelExhausted},
		"E01 loop, time":       {command(t, "0003400c000b0b", start), quick, skill.Timeout},
		"E02 start function":   {command(t, "0003400c000b0b", "080100"), quick, skill.Timeout},
		"E03 calls, no loop":   {command(t, "0010001000100010000b", start), skill.Limits{}, skill.StackLimit},
		"E07 recursion":        {command(t, "0010000b", start), skill.Limits{}, skill.StackLimit},
		"E10 minimum of 4 GiB": {command(t, "000b", "0505010080"+"8004", start), skill.Limits{}, skill.MemoryLimit},
		"E11 table.grow": {
			bytes("0061736d01000000010401600000030201000404016f00000503010001071302065f73746172740000066d656d6f727902000a0c010a00d06f417efc0f001a0b"),
			skill.Limits{},
			skill.TableLimit,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(engine(t), nil)
			defer r.Close()
			call := skillOf(t, c.module)
			call.Limits = call.Limits.Lower(c.limits)
			for range 2 { // the second is answered from what is known
				began := time.Now()
				reply, err := runnertest.Do(t.Context(), r, call)
				if err != nil || reply.Code != c.want {
					t.Fatalf("%+v, %v; want %s", reply, err, c.want)
				}
				if reply.Message == "" || len(reply.Message) > 512 || strings.Contains(reply.Message, call.Folder) {
					t.Errorf("message %q", reply.Message)
				}
				if took := time.Since(began); c.want == skill.Timeout && took < 250*time.Millisecond {
					t.Errorf("ended after %v", took)
				}
			}
			canary := skillOf(t, command(t, "000b", start))
			if reply, err := runnertest.Do(t.Context(), r, canary); err != nil || reply.Code != "" || reply.ExitCode != 0 {
				t.Errorf("the next call: %+v, %v", reply, err)
			}
		})
	}
}

// E24 and E25: runs without an end, one after the other, ended by their deadline
// or because the caller leaves; nothing is left of them.
func TestRunawaysLeaveNothing(t *testing.T) {
	runs := 200
	if testing.Short() {
		runs = 20
	}
	r := New(engine(t), nil)
	defer r.Close()
	loop := skillOf(t, command(t, "0003400c000b0b", start))
	loop.Limits.Timeout = 2 * time.Millisecond
	loop.Grants = skill.Grants{Data: t.TempDir(), Scratch: true}
	run := func(ctx context.Context, want skill.Code) {
		t.Helper()
		if reply, err := runnertest.Do(ctx, r, loop); err != nil || reply.Code != want {
			t.Errorf("%+v, %v; want %s", reply, err, want)
		}
	}
	loop.Limits.Timeout = time.Second // to compile in
	run(t.Context(), skill.Timeout)
	goroutines, open := runtime.NumGoroutine(), descriptors()
	loop.Limits.Timeout = 2 * time.Millisecond
	for range runs {
		run(t.Context(), skill.Timeout)
	}
	loop.Limits.Timeout = time.Minute
	for range runs / 4 {
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Millisecond, stop)
		run(ctx, skill.Cancelled)
	}
	var wg sync.WaitGroup
	loop.Limits.Timeout = 50 * time.Millisecond
	for range 50 {
		wg.Go(func() { run(t.Context(), skill.Timeout) })
	}
	wg.Wait()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		g, d := runtime.NumGoroutine(), descriptors()
		if g <= goroutines && d <= open {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines %d, were %d; descriptors %d, were %d", g, goroutines, d, open)
		}
	}
}

// marks is a module that exits with 99 if it finds anything of an earlier run in
// its memory, its data, its globals or its table, then leaves a mark in each.
func marks(t testing.TB) []byte {
	t.Helper()
	body := "00" +
		"2300" + // the global
		"4100280200" + "72" + // or a word of the memory
		"3f00410147" + "72" + // or the memory's size
		"41e4002d0000" + "41c10047" + "72" + // or the data, which is an A
		"41002500d1" + "72" + // or the table
		"0440" + "41e3001000" + "0b" +
		"41012400" + "41004101360200" + "410140001a" + "41e40041003a0000" + "4100d0702600" + "0b"
	m, err := hex.DecodeString("0061736d01000000" + "0108026000006001" + "7f00" +
		"022401" + "16" + hex.EncodeToString([]byte("wasi_snapshot_preview1")) + "09" + hex.EncodeToString([]byte("proc_exit")) + "0001" +
		"03020100" + "040401700001" + "0503010001" + "0606017f0141000b" + "070a01065f73746172740001" +
		"0907010041000b0101" + fmt.Sprintf("0a%02x01%02x", len(body)/2+2, len(body)/2) + body + "0b08010041e4000b0141")
	musttest.Do(t, err)
	return m
}

// X03: two tenants' calls of one module, a thousand each, at once and in turn. The
// first one of all finds nothing either, so the module is right.
func TestNothingStaysBetweenCalls(t *testing.T) {
	r := New(engine(t), nil)
	defer r.Close()
	a, b := skillOf(t, marks(t)), skillOf(t, marks(t))
	wantExit(t, r, a, 0)
	var wg sync.WaitGroup
	for i := range 8 {
		call := []*skill.Call{a, b}[i%2]
		wg.Go(func() {
			for range 250 {
				wantExit(t, r, call, 0)
			}
		})
	}
	wg.Wait()
}

// descriptors counts what this process has open; 0 where that is not known.
func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}
