package runnertest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// dataFolder is a data folder with a few files.
func dataFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	musttest.Do(t, os.Mkdir(filepath.Join(dir, "logs"), 0o755))
	put(t, filepath.Join(dir, "a.txt"), []byte("alpha\n"))
	put(t, filepath.Join(dir, "logs", "b.txt"), []byte("beta\n"))
	return dir
}

// state describes everything below dir: names, modes, times and contents.
func state(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		all[rel] = fmt.Sprintf("%v %v", info.Mode(), info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			all[rel] += fmt.Sprintf(" %x", sha256.Sum256(b))
		}
		return nil
	})
	musttest.Do(t, err)
	return all
}

func dataRead(b *bench) {
	dir := dataFolder(b.t)
	for name, want := range map[string]string{"data/a.txt": "alpha\n", "./data/a.txt": "alpha\n", "data/logs/b.txt": "beta\n"} {
		r := b.run(Program{Do: ReadFile, Names: []string{name}}, data(dir))
		b.ended(r, 0)
		b.stdout(r, []byte(want))
	}
	r := b.run(Program{Do: ReadFile, Names: []string{"data/none.txt"}}, data(dir))
	b.ended(r, 3)
	b.stdout(r, []byte("refused\n"))
}

// A part of the data folder has the path that it has in the whole, and the rest is not there.
func dataInPart(b *bench) {
	dir := dataFolder(b.t)
	part := func(c *skill.Call) { c.Grants.Data, c.Grants.DataAt = filepath.Join(dir, "logs"), "logs" }
	for name, want := range map[string]string{"data/logs/b.txt": "beta\n", "./data/../data/logs/b.txt": "beta\n"} {
		r := b.run(Program{Do: ReadFile, Names: []string{name}}, part)
		b.ended(r, 0)
		b.stdout(r, []byte(want))
	}
	for _, name := range []string{"data/a.txt", "data/b.txt", "data/logs/../a.txt", "data/logs/../../a.txt"} {
		r := b.run(Program{Do: ReadFile, Names: []string{name}}, part)
		b.ended(r, 3)
		b.stdout(r, []byte("refused\n"))
	}
	before := state(b.t, dir)
	b.ended(b.run(Program{Do: WriteData}, part), 0)
	if diff := cmp.Diff(before, state(b.t, dir)); diff != "" {
		b.t.Fatalf("the data folder changed (-before +after):\n%s", diff)
	}
}

func dataNotGranted(b *bench) {
	r := b.run(Program{Do: ReadFile, Names: []string{"data/a.txt"}})
	b.ended(r, 3)
	b.stdout(r, []byte("refused\n"))
}

func dataUnchanged(b *bench) {
	dir := dataFolder(b.t)
	before := state(b.t, dir)
	for _, opts := range [][]option{{data(dir)}, {data(dir), scratch(1 << 20)}} {
		r := b.run(Program{Do: WriteData}, opts...)
		b.ended(r, 0)
		if got := strings.TrimSpace(string(r.Stdout)); got != "[]" {
			b.t.Errorf("ways that changed the data folder: %.400s", got)
		}
		if diff := cmp.Diff(before, state(b.t, dir)); diff != "" {
			b.t.Fatalf("the data folder changed (-before +after):\n%s", diff)
		}
	}
}

// The folder of a skill is what its digest was taken over: a run that changed
// it (a cache of compiled code is enough) would make the digest a lie.
func skillFolderUnchanged(b *bench) {
	c := b.call(Program{Do: Environment}, scratch(1<<20))
	before := state(b.t, c.Folder)
	b.ended(b.do(b.t.Context(), c), 0)
	if diff := cmp.Diff(before, state(b.t, c.Folder)); diff != "" {
		b.t.Errorf("the skill's folder changed (-before +after):\n%s", diff)
	}
}

func scratchNotGranted(b *bench) {
	r := b.run(Program{Do: WriteWork, N: 8, Names: []string{"a.txt"}})
	if r.Code == "" && r.ExitCode == 0 {
		b.t.Error("a guest without scratch wrote to ./work")
	}
	if r.Artifacts != nil {
		b.t.Errorf("artifacts without scratch: %v", r.Artifacts)
	}
}

func scratchFresh(b *bench) {
	r := b.run(Program{Do: WriteWork, N: 8, Names: []string{"a.txt"}}, scratch(1<<20))
	b.ended(r, 0)
	r = b.run(Program{Do: ListWork}, scratch(1<<20))
	b.ended(r, 0)
	var names []string
	if err := json.Unmarshal(r.Stdout, &names); err != nil || names == nil || len(names) != 0 {
		b.t.Errorf("the next run sees %.200q in ./work (%v); want an empty folder", r.Stdout, err)
	}
}

func scratchCap(b *bench) {
	const size = 1 << 20
	// Either the guest is refused and says how far it came, or the run is ended.
	r := b.run(Program{Do: FillWork, N: 100_000}, scratch(size))
	if r.Code == "" {
		b.ended(r, 0)
		var files int
		if err := json.Unmarshal(r.Stdout, &files); err != nil || files > size>>16 || files == 0 {
			b.t.Errorf("the guest wrote %.80q files of 64 KiB (%v); want 1 to %d", r.Stdout, err, size>>16)
		}
	} else {
		b.stopped(r, skill.OutputLimit)
	}
	var total int64
	for _, a := range r.Artifacts {
		total += a.Size
	}
	if total > size {
		b.t.Errorf("artifacts of %d bytes; the scratch cap is %d", total, size)
	}
	b.healthy()

	// One file over the cap must not be written either.
	r = b.run(Program{Do: WriteWork, N: size + 1, Names: []string{"big"}}, scratch(size))
	if r.Code == "" && r.ExitCode == 0 {
		b.t.Errorf("a file of %d bytes was written under a cap of %d", size+1, size)
	}
	b.healthy()
}

func artifacts(b *bench) {
	names := []string{"b.txt", "a.txt", "sub/c.txt", "Z", "ü.csv"}
	r := b.run(Program{Do: WriteWork, N: 20_000, Names: names}, scratch(1<<20))
	b.ended(r, 0)
	want := make([]skill.Artifact, 0, 4)
	for _, name := range []string{"Z", "a.txt", "b.txt", "ü.csv"} {
		want = append(want, skill.Artifact{Name: name, Data: Pattern(20_000), Size: 20_000})
	}
	if diff := cmp.Diff(want, r.Artifacts); diff != "" {
		b.t.Errorf("artifacts (-want +got):\n%.2000s", diff)
	}
}
