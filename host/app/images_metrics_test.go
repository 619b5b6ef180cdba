package app

import (
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm/image"
	"openskill/wasm/wasmtest"
)

// listens is a module that reads its input, and answers {}: one that has an image.
func listens() []byte {
	b := wasmtest.New()
	read, write := b.Import("fd_read"), b.Import("fd_write")
	b.Memory(1)
	b.Data(0, "\x00\x02\x00\x00\x10\x00\x00\x00") // 16 bytes at 512
	b.Data(256, "\x00\x03\x00\x00\x02\x00\x00\x00")
	b.Data(768, "{}")
	b.Command(wasmtest.I32(0) + wasmtest.I32(0) + wasmtest.I32(1) + wasmtest.I32(1024) + wasmtest.Call(read) + wasmtest.Drop +
		wasmtest.I32(1) + wasmtest.I32(256) + wasmtest.I32(1) + wasmtest.I32(1032) + wasmtest.Call(write) + wasmtest.Drop)
	return b.Bytes()
}

// TestMetricsOfImages: the image of a skill is counted where it is, in its worker or in the
// host, and is gone with its worker.
func TestMetricsOfImages(t *testing.T) {
	if !image.Supported {
		t.Skip("there are no images on this system")
	}
	for _, workers := range []string{"tenant", "off"} {
		if workers == "tenant" && !hasWorkers {
			continue
		}
		t.Run("workers "+workers, func(t *testing.T) {
			s := settings(t, map[string]string{"workers": workers})
			musttest.Do(t, os.WriteFile(filepath.Join(s.SkillsDir, "quick", "quick.wasm"), listens(), 0o600))
			v := serve(t, s)
			read := func() map[string]float64 {
				families, got := scrape(t, v), map[string]float64{}
				for _, name := range []string{"openskill_images", "openskill_image_bytes", "openskill_images_made_total", "openskill_images_dropped_total", "openskill_image_restores_total"} {
					got[name] = value(t, families, name)
				}
				return got
			}
			// A host of its own starts skills ahead of calls, so that there may be an image already.
			if before := read(); before["openskill_images"] > 1 || before["openskill_images_dropped_total"] != 0 || before["openskill_image_restores_total"] != 0 {
				t.Errorf("before any call: %v", before)
			}
			// An instance is put back after its call was answered, and so it is seen at a later
			// call; how many there are is for the image to say.
			got := map[string]float64{}
			for calls := 0; got["openskill_image_restores_total"] < 5; calls++ {
				if r := v.post(t, "quick"); !r.Success || calls == 1000 {
					t.Fatalf("call %d: %+v; %v", calls, r.Error, got)
				}
				got = read()
			}
			if got["openskill_images"] != 1 || got["openskill_images_made_total"] != 1 || got["openskill_images_dropped_total"] != 0 || got["openskill_image_bytes"] < 256<<10 || got["openskill_image_bytes"] > 64<<20 {
				t.Errorf("%v", got)
			}
			if workers == "off" {
				return
			}
			// A worker that ends takes its image along; what was counted stays counted.
			for _, pid := range v.host.workers.pool.Stats().Pids {
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill()
				}
			}
			after := got
			for after["openskill_images_dropped_total"] == 0 && t.Context().Err() == nil {
				after = read()
			}
			if after["openskill_images"] != 0 || after["openskill_image_bytes"] != 0 || after["openskill_images_made_total"] != 1 || after["openskill_image_restores_total"] < got["openskill_image_restores_total"] {
				t.Errorf("without the worker: %v, before it %v", after, got)
			}
			if r := v.post(t, "quick"); !r.Success && r.Error.Code != skill.WorkerCrashed {
				t.Errorf("%+v", r.Error)
			}
		})
	}
}
