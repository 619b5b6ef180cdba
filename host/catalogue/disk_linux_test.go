package catalogue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// smallDisk is set for a process that has a disk of its own; see
// TestFullDisk.
const smallDisk = "OPENSKILL_TEST_SMALL_DISK"

// TestFullDisk gives a process a file system of 8 MiB, takes its descriptors
// away, fills the disk, and back: each failure is clear, changes nothing, and passes without a
// restart.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), smallDisk+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch exit, ok := errors.AsType[*exec.ExitError](err); {
	case err == nil:
	case ok && exit.ExitCode() == cannotMount:
		t.Skipf("this kernel lets no user mount: %s", out)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL):
		t.Skipf("this kernel lets no user have namespaces: %v", err)
	default:
		t.Errorf("%v\n%s", err, out)
	}
}

const cannotMount = 3

func onSmallDisk(dir string) int {
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=8m"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return cannotMount
	}
	if err := fillAndFree(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func fillAndFree(dir string) error {
	db, err := store.Open(context.Background(), store.Options{StateDir: dir})
	if err != nil {
		return err
	}
	s, err := Open(options(db, dir, nil))
	if err != nil {
		return err
	}
	if _, err := publish(s, "acme", "up", "1.0.0", "one"); err != nil {
		return err
	}
	if _, err := s.decide(to(Enable, "acme", "up", "")); err != nil {
		return err
	}
	const before = "1.0.0 true: 1.0.0=enabled"
	unchanged := func(what string, do ...func() error) error {
		for i, f := range do {
			if err := f(); skill.CodeOf(err) != skill.Internal || err == nil {
				return fmt.Errorf("%s, %d: %w", what, i, err)
			}
			if got := seen(s, "acme", "up"); got != before {
				return fmt.Errorf("%s, %d: it has become %s", what, i, got)
			}
		}
		return nil
	}
	upload := func(id skill.ID) error {
		u, err := s.Begin(author("acme"))
		if err != nil {
			return err
		}
		defer u.Close()
		a, err := pack(u.Staging(), id, "2.0.0", strings.Repeat("x", 100_000))
		if err != nil {
			return &skill.Error{Code: skill.Internal, Err: err} // admission has no place to unpack it
		}
		_, err = u.publish(context.Background(), a)
		return err
	}
	again := func() error { return upload("up") }
	disable := func() error { _, err := s.decide(to(Disable, "acme", "up", "")); return err }
	remove := func() error { _, err := s.decide(to(Delete, "acme", "up", "1.0.0")); return err }

	// No descriptors: nothing is changed, and nothing is taken for damaged.
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: limit.Max}); err != nil {
		return err
	}
	if err := again(); skill.CodeOf(err) != skill.Internal {
		return fmt.Errorf("without descriptors: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if got := seen(s, "acme", "up"); got != before {
		return fmt.Errorf("with descriptors again: it has become %s", got)
	}

	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	if err := unchanged("the disk is full", again, disable, remove); err != nil {
		return err
	}
	// Space for one more write, and again, until it is enough.
	info, err := os.Stat(filler)
	if err != nil {
		return err
	}
	for size := info.Size(); ; size -= block {
		if size < 0 {
			return errors.New("the whole disk is not enough for an upload")
		}
		if err := os.Truncate(filler, size); err != nil {
			return err
		}
		err := upload("next")
		switch got := seen(s, "acme", "next"); {
		case err == nil && got == "2.0.0 false: 2.0.0=disabled":
		case skill.CodeOf(err) != skill.Internal || got != "NOT_FOUND":
			return fmt.Errorf("with %d blocks: %w, and %s", (info.Size()-size)/block, err, got)
		}
		if err == nil {
			break
		}
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	if err := again(); err != nil {
		return fmt.Errorf("after it is well again: %w", err)
	}
	if got, want := seen(s, "acme", "up"), "1.0.0 true: 1.0.0=enabled 2.0.0=disabled"; got != want {
		return fmt.Errorf("after it is well again: %s, want %s", got, want)
	}
	if err := s.Close(); err != nil {
		return err
	}
	reopened, err := Open(options(db, dir, nil))
	if err != nil {
		return err
	}
	if got, want := seen(reopened, "acme", "up"), "1.0.0 true: 1.0.0=enabled 2.0.0=disabled"; got != want {
		return fmt.Errorf("after a restart: %s, want %s", got, want)
	}
	return reopened.Close()
}
