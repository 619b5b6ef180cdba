package admission

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"openskill/host/admission/admissiontest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm/wasmtest"
)

// small are the cases that a fuzzer can make something of.
func small() (list []admissiontest.Case) {
	for _, c := range admissiontest.Cases() {
		if len(c.Bytes) < 64<<10 {
			list = append(list, c)
		}
	}
	return list
}

// FuzzArchive: whatever is sent is accepted or refused, by the rules of holds, and
// what is accepted of a zip is what another reader sees in it.
func FuzzArchive(f *testing.F) {
	for _, c := range small() {
		f.Add(c.Bytes)
	}
	a, dir, file := admission(f, options()), staging(f), spool(f, nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := admitIn(t, a, b, dir, file)
		if err == nil {
			otherReader(t, b, got)
		}
	})
}

// FuzzTar looks behind the checksum of gzip, where few fuzzers come.
func FuzzTar(f *testing.F) {
	for _, c := range small() {
		if plain := gunzip(c.Bytes); plain != nil {
			f.Add(plain)
		}
	}
	a, dir, file := admission(f, options()), staging(f), spool(f, nil)
	f.Fuzz(func(t *testing.T, plain []byte) {
		_, _ = admitIn(t, a, admissiontest.Gzip(plain), dir, file) // it checks what must hold
	})
}

func gunzip(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	plain, err := io.ReadAll(r)
	if err != nil || len(plain) > 1<<20 {
		return nil
	}
	return plain
}

// otherReader holds what was accepted of a zip against what archive/zip finds: the
// same files, and nothing that was not told.
func otherReader(t *testing.T, b []byte, got *Admitted) {
	t.Helper()
	if !bytes.HasPrefix(b, []byte("PK")) {
		return
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("accepted, and archive/zip cannot read it: %v", err)
	}
	sizes := map[string]int64{}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") || ofFinder(f.Name) {
			continue
		}
		r := musttest.Get(f.Open())(t)
		n, err := io.Copy(io.Discard, r)
		if err != nil {
			t.Fatalf("accepted, and archive/zip cannot read %q: %v", f.Name, err)
		}
		sizes[strings.TrimPrefix(f.Name, "./")] = n
	}
	if len(sizes) != len(got.Report.Files) {
		t.Fatalf("accepted %v; archive/zip finds %v", got.Report.Files, sizes)
	}
	for _, f := range got.Report.Files {
		size, found := sizes[f.Path]
		for name, n := range sizes { // in one folder
			if _, rest, ok := strings.Cut(name, "/"); !found && ok && rest == f.Path {
				size, found = n, true
			}
		}
		if !found || size != f.Size {
			t.Fatalf("accepted %v; archive/zip finds %v", got.Report.Files, sizes)
		}
	}
}

// TestMutations damages archives in a way that is repeated by the seed that it
// prints. OPENSKILL_MUTATIONS is how many; OPENSKILL_SEED repeats a run.
func TestMutations(t *testing.T) {
	t.Parallel()
	count, seed := mutations(t)
	a := admission(t, options())
	seeds := small()
	verdicts := map[skill.Code]int{}
	dir, file := staging(t), spool(t, nil)
	for i := range count {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		b := mutated(random, seeds)
		func() {
			defer func() { // also where holds ends the test
				if t.Failed() {
					t.Logf("archive %d: %x", i, b)
				}
			}()
			got, err := admitIn(t, a, b, dir, file)
			verdicts[skill.CodeOf(err)]++
			if err == nil {
				otherReader(t, b, got)
			}
		}()
		if t.Failed() {
			return
		}
	}
	t.Logf("%v", verdicts)
	if verdicts[""] == 0 || verdicts[skill.ArchiveRejected] == 0 || verdicts[skill.InvalidManifest] == 0 {
		t.Error("the mutations reach too little: some verdict never came")
	}
}

// TestMutatedModules does the same to modules, which are sent with a manifest and
// checked by the real checker.
func TestMutatedModules(t *testing.T) {
	t.Parallel()
	count, seed := mutations(t)
	a := admission(t, options())
	seeds := []admissiontest.Case{{Bytes: goModule()}}
	for _, c := range wasmtest.Hostile() {
		if len(c.Module) < 16<<10 {
			seeds = append(seeds, admissiontest.Case{Name: c.Name, Bytes: c.Module})
		}
	}
	manifest := fmt.Appendf(nil, wasmManifest, "up.wasm")
	verdicts := map[skill.Code]int{}
	dir, file := staging(t), spool(t, nil)
	for i := range count {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		b := damage(random, seeds[random.IntN(len(seeds))].Bytes, seeds)
		fill(t, file, b)
		got, err := a.Admit(t.Context(), Source{Module: file, Manifest: manifest}, dir)
		verdicts[skill.CodeOf(err)]++
		if err != nil {
			refusalHolds(t, dir, err)
		} else if err := Discard(got.Folder); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("module %d: %x", i, b)
		}
	}
	empty(t, dir)
	t.Logf("%v", verdicts)
	if verdicts[""] == 0 || verdicts[skill.InvalidModule] == 0 || verdicts[skill.Internal] > 0 || verdicts[skill.InvalidManifest] > 0 {
		t.Error("the mutations reach too little, or something else failed")
	}
}

// mutations are how many a test makes, and by which seed.
func mutations(t *testing.T) (count int, seed uint64) {
	t.Helper()
	count, seed = 500, uint64(time.Now().UnixNano())
	if testing.Short() {
		count = 200
	}
	var err error
	if v := os.Getenv("OPENSKILL_MUTATIONS"); v != "" {
		if count, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	if v := os.Getenv("OPENSKILL_SEED"); v != "" {
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("OPENSKILL_SEED=%d", seed)
	return count, seed
}

// mutated damages one of the seeds. Those of tars are mostly damaged before they
// are compressed.
func mutated(random *rand.Rand, seeds []admissiontest.Case) []byte {
	seed := seeds[random.IntN(len(seeds))]
	for random.IntN(2) == 0 && seed.Want != "" { // more often of what is accepted
		seed = seeds[random.IntN(len(seeds))]
	}
	b := slices.Clone(seed.Bytes)
	plain := gunzip(b)
	if plain != nil && random.IntN(4) > 0 {
		b = damage(random, plain, seeds)
		if random.IntN(2) == 0 {
			checksums(b)
		}
		return admissiontest.Gzip(b)
	}
	return damage(random, b, seeds)
}

func damage(random *rand.Rand, b []byte, seeds []admissiontest.Case) []byte {
	b = slices.Clone(b)
	for range random.IntN(4) {
		if len(b) == 0 {
			return b
		}
		at := random.IntN(len(b))
		n := min(1+random.IntN(64), len(b)-at)
		switch random.IntN(8) {
		case 0:
			b[at] ^= 1 << random.IntN(8)
		case 1:
			b[at] = byte(random.Uint32())
		case 2:
			b = slices.Delete(b, at, at+n)
		case 3:
			b = slices.Insert(b, at, slices.Clone(b[at:at+n])...)
		case 4:
			other := seeds[random.IntN(len(seeds))].Bytes
			if len(other) > 0 {
				from := random.IntN(len(other))
				b = slices.Insert(b, at, other[from:min(from+n, len(other))]...)
			}
		case 5:
			values := []uint32{0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, uint32(len(b)), uint32(at)}
			if at+4 <= len(b) {
				binary.LittleEndian.PutUint32(b[at:], values[random.IntN(len(values))])
			}
		case 6:
			b = b[:at]
		case 7:
			// In a text, another name or number.
			copy(b[at:], []string{"../", "/", "\\", "\x00", "A", "9", ":", "id: x\n"}[random.IntN(8)])
		}
	}
	return b
}

// checksums makes those of a tar's headers right again.
func checksums(b []byte) {
	for at := 0; at+512 <= len(b); at += 512 {
		h := b[at : at+512]
		if !bytes.HasPrefix(h[257:], []byte("ustar")) {
			continue
		}
		copy(h[148:156], "        ")
		sum := int64(0)
		for _, c := range h {
			sum += int64(c)
		}
		digits := []byte("000000\x00 ")
		for i := 5; i >= 0; i-- {
			digits[i] = byte('0' + sum&7)
			sum >>= 3
		}
		copy(h[148:156], digits)
	}
}
