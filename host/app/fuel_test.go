package app

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm/wasmtest"
)

// What start-ups use counts for the tenant's fuel of the day, however their calls end.
func TestDailyFuelCountsStartUps(t *testing.T) {
	spins := wasmtest.New() // never reads: all of a call is start-up
	spins.Command(wasmtest.Loop(wasmtest.Br(0)))
	grows := wasmtest.New() // each call spoils its instance, so that the next one needs a start-up
	read, write := grows.Import("fd_read"), grows.Import("fd_write")
	grows.Memory(1)
	grows.Data(0, "\x20\x00\x00\x00\x01\x00\x00\x00\x30\x00\x00\x00\x02\x00\x00\x00")
	grows.Data(48, "{}")
	io := func(f uint32, fd, vector int64) wasmtest.Code {
		return wasmtest.I32(fd) + wasmtest.I32(vector) + wasmtest.I32(1) + wasmtest.I32(16) + wasmtest.Call(f) + wasmtest.Drop
	}
	grows.Command(wasmtest.Times(100_000, 0, wasmtest.I32(1)+wasmtest.Drop) + io(read, 0, 0) +
		wasmtest.I32(1) + wasmtest.MemoryGrow + wasmtest.Drop + io(write, 1, 8))

	const daily = 5_000_000
	for _, c := range []struct {
		name   string
		module []byte
		limits string
		ok     func(*skill.Result) bool
		most   uint64 // units of a call on record
		calls  int    // that show less than the day's fuel, or all of it
	}{
		{
			"the deadline ends the start-up", spins.Bytes(), "{timeout_ms: 700, fuel: 1000000000000}",
			func(r *skill.Result) bool { return !r.Success && r.Error.Code == skill.Timeout }, 1_000_000_000_000, 5,
		},
		{
			"the call has little fuel", spins.Bytes(), "{timeout_ms: 700, fuel: 1000}",
			func(r *skill.Result) bool {
				return !r.Success && (r.Error.Code == skill.Timeout || r.Error.Code == skill.FuelExhausted)
			}, 1000, 250,
		},
		{
			"each call needs another", grows.Bytes(), "{timeout_ms: 20000}",
			func(r *skill.Result) bool { return r.Success }, 100_000, 250,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := settings(t, map[string]string{"daily-fuel": fmt.Sprint(daily), "quarantine-limits": "1000"})
			folder := filepath.Join(s.SkillsDir, "starts")
			manifest := manifestOf("starts", "1.0.0", wasiEntry+"limits: "+c.limits+"\n")
			musttest.Do(t, os.Mkdir(folder, 0o700))
			for name, text := range map[string]string{"skill.yaml": manifest, "m.wasm": string(c.module)} {
				musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
			}
			h := openHost(t, s)
			h.Prepare(t.Context(), "starts")
			shown := uint64(0)
			for range c.calls {
				r := invoke(t, h, "starts")
				if !r.Success && r.Error.Code == skill.RateLimited {
					if r.Error.Details["unit"] != "fuel_per_day" {
						t.Fatalf("%+v", r.Error)
					}
					if shown == 0 {
						t.Error("no call shows what it used")
					}
					return
				}
				if !c.ok(r) || r.Meta.FuelUsed > c.most {
					t.Fatalf("%+v %+v", r.Meta, r.Error)
				}
				shown += r.Meta.FuelUsed
			}
			t.Errorf("no call is refused; they show %d units of %d", shown, daily)
		})
	}
}
