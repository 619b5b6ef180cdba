package workers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// keep puts what a process made in its place, in one step. It was at the mercy of the
// module that it compiled, so only that is taken which a compiler leaves of this module:
// few files, that nobody else can read or execute, and none that is another module's.
// Code is called by what it was made of, which cannot be seen from its name: see Give.
func (m *Modules) keep(dir, n, own, tenant string, report []byte, most uint64) error {
	k := &keeper{dir: dir, own: own, files: maxKept, bytes: most}
	err := k.look(".")
	if errors.Is(err, errLeft) {
		return leftTooMuch(err, strings.HasSuffix(n, trustedSuffix))
	}
	if err == nil {
		err = writeSums(dir)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, tenantFile), []byte(tenant), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, reportFile), report, 0o600)
	}
	if err != nil {
		return fmt.Errorf("worker: keep a compiled module: %w", err)
	}
	m.trim()
	if err := os.Rename(dir, filepath.Join(m.root, n)); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(filepath.Join(m.root, n, reportFile)); there == nil {
			return nil // another host of this folder was faster
		}
		return fmt.Errorf("worker: keep a compiled module: %w", err)
	}
	return nil
}

// maxKept is how many files and folders a compiler may leave: it makes eight.
const maxKept = 16

// errLeft says that a compiler did not do as it should.
var errLeft = errors.New("worker: a compiler left what it should not")

// leftTooMuch is a verdict against a stranger's module.
func leftTooMuch(err error, trusted bool) error {
	if trusted {
		return err
	}
	return &skill.Error{
		Op: "worker.Compile", Code: skill.InvalidModule, Err: err,
		Message: "the compiler output of this module is abnormal; the module is refused",
	}
}

// watchFolder looks at what a compiler writes until ctx ends, and kills one that writes
// more than it may have: what it leaves is looked at later, but the disk is full by then.
func watchFolder(ctx context.Context, dir string, most uint64, kill func() error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		files := maxKept
		if n := taken(dir, &files); n > most || files < 0 {
			_ = kill() // or it has ended
			return fmt.Errorf("%w: %d bytes and counting", errLeft, n)
		}
	}
}

// taken is how much of the disk a folder takes, in bytes. It looks at so many files and
// folders; what comes and goes meanwhile is not counted.
func taken(dir string, files *int) (n uint64) {
	f, err := os.Open(dir)
	if err != nil {
		return 0
	}
	defer f.Close()
	entries, _ := f.ReadDir(max(*files, 0) + 1) // of what cannot be read there is no more
	for _, e := range entries {
		if *files--; *files < 0 {
			return n
		}
		if e.IsDir() {
			n += taken(filepath.Join(dir, e.Name()), files)
		} else if info, err := e.Info(); err == nil {
			n += allocated(info)
		}
	}
	return n
}

// keeper looks at what a compiler left.
type keeper struct {
	dir, own string
	files    int    // that may still come
	bytes    uint64 // as that
}

func (k *keeper) look(folder string) error {
	path := filepath.Join(k.dir, folder)
	if err := os.Chmod(path, 0o700); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	entries, err := f.ReadDir(k.files + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, e := range entries {
		if k.files--; k.files < 0 {
			return fmt.Errorf("%w: more than it makes", errLeft)
		}
		if err := k.entry(filepath.Join(folder, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) entry(rel string, e fs.DirEntry) error {
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if e.IsDir() && len(parts) < 3 {
		return k.look(rel)
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	size := uint64(info.Size()) // not negative
	code := len(parts) == 3 && parts[0] == "code" || len(parts) == 2 && (parts[0] == "metered" || parts[0] == "pages") && parts[1] == k.own
	if !info.Mode().IsRegular() || !code || size > k.bytes {
		return fmt.Errorf("%w: %s of %d bytes, which is nothing that it makes", errLeft, info.Mode(), size)
	}
	k.bytes -= size
	return os.Chmod(filepath.Join(k.dir, rel), 0o600)
}

// Link shows a worker what was compiled of a module, in its own folder. Code that is
// called like what is there already, and is not the same, was made by a compiler that
// did not do as it should: who is given the one is not given the other.
func (m *Modules) Link(view, digest string, trusted bool) error {
	n, err := name(digest, trusted)
	if err != nil {
		return err
	}
	from := filepath.Join(m.root, n)
	now := time.Now()
	_ = os.Chtimes(from, now, now) // or it counts as older than it is
	var last []string
	link := func(rel string) error {
		to := filepath.Join(view, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		err := os.Link(filepath.Join(from, rel), to)
		if errors.Is(err, fs.ErrExist) {
			return same(filepath.Join(from, rel), to)
		}
		return err
	}
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		switch {
		case err != nil || ours(rel):
			return err
		case strings.HasPrefix(rel, "metered"):
			last = append(last, rel) // whoever sees it counts on the code
			return nil
		}
		return link(rel)
	})
	for _, rel := range last {
		if err == nil {
			err = link(rel)
		}
	}
	if err != nil {
		return fmt.Errorf("worker: show a compiled module: %w", err)
	}
	return nil
}

// sumsFile has the SHA-256 of each file that a compiler left.
const sumsFile = "sums.json"

// ours reports whether a file of a compiled module is the host's own, beside what the
// compiler left.
func ours(rel string) bool { return rel == reportFile || rel == sumsFile || rel == tenantFile }

// sums are those of the files of a folder, by their names in it.
func sums(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || ours(rel) {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		_, err = io.Copy(h, f)
		all[rel] = hex.EncodeToString(h.Sum(nil))
		return err
	})
	return all, err
}

func writeSums(dir string) error {
	all, err := sums(dir)
	if err != nil {
		return err
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), b, 0o600)
}

// lookAgain is how long a module is taken for whole that was looked at: that reads all of
// it, and who asks for it may be anybody.
const lookAgain = time.Minute

// Damaged reports whether a module is there and not as its compiler left it. What is
// damaged is removed, and the next who needs it has it compiled.
func (m *Modules) Damaged(digest string, trusted bool) bool {
	n, err := name(digest, trusted)
	if err != nil {
		return false
	}
	m.mu.Lock()
	before := m.looked[n]
	if len(m.looked) >= maxRefused {
		clear(m.looked)
	}
	now := time.Now()
	if now.Sub(before) >= lookAgain {
		m.looked[n] = now
	}
	m.mu.Unlock()
	if now.Sub(before) < lookAgain {
		return false
	}
	dir := filepath.Join(m.root, n)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false // refused, or being compiled
	}
	var left map[string]string
	b, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err == nil {
		err = json.Unmarshal(b, &left)
	}
	found, errFound := sums(dir)
	if err == nil && errFound == nil && maps.Equal(left, found) {
		return false
	}
	m.o.Log.Warn("a compiled module is damaged; compiling it again", slog.String("module", digest))
	return os.RemoveAll(dir) == nil
}

// same makes sure that two files have the same content.
func same(a, b string) error {
	x, err := os.Open(a)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return err
	}
	defer y.Close()
	ofX, err := x.Stat()
	if err != nil {
		return err
	}
	ofY, err := y.Stat()
	if err != nil || os.SameFile(ofX, ofY) {
		return err
	}
	var p, q [32 << 10]byte
	for ofX.Size() == ofY.Size() {
		n, err := io.ReadFull(x, p[:])
		k, _ := io.ReadFull(y, q[:])
		if !bytes.Equal(p[:n], q[:k]) {
			break
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("two modules have code of one name that is not the same")
}
