package records_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// smallDisk is set for a process that has a disk of its own; see TestFullAndReadOnlyDisk.
const smallDisk = "OPENSKILL_TEST_SMALL_DISK"

const cannotMount = 3

// TestFullAndReadOnlyDisk gives a process a file system of 4 MiB and fills it under the
// Log: no call begins that is not on record, and all goes on when there is room again.
// A disk that is read-only lets no host begin.
func TestFullAndReadOnlyDisk(t *testing.T) {
	t.Parallel()
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
		t.Logf("%s", out)
	case ok && exit.ExitCode() == cannotMount:
		t.Skipf("this kernel lets no user mount: %s", out)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL):
		t.Skipf("this kernel lets no user have namespaces: %v", err)
	default:
		t.Errorf("%v\n%s", err, out)
	}
}

func onSmallDisk(dir string) int {
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=4m"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return cannotMount
	}
	if err := errors.Join(fillAndFree(dir, ""), empty(dir), fillAndFree(dir, filepath.Join(dir, "journal")), empty(dir), readOnly(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// empty removes all that is in a folder.
func empty(dir string) error {
	all, err := os.ReadDir(dir)
	for _, f := range all {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, f.Name())))
	}
	return err
}

// recording opens a database and a Log on it.
func recording(dir, journal string) (*store.DB, *records.Log, error) {
	db, err := store.Open(context.Background(), store.Options{URL: "sqlite:" + filepath.Join(dir, "test.db")})
	if err != nil {
		return nil, nil, err
	}
	l, err := records.Open(context.Background(), records.Options{
		Store: records.NewStore(db), Policy: records.KeepFull, Log: slog.New(slog.DiscardHandler), Wait: time.Second, Journal: journal,
	})
	return db, l, err
}

func fillAndFree(dir, journal string) error {
	ctx := context.Background()
	db, l, err := recording(dir, journal)
	if err != nil {
		return err
	}
	defer db.Close()
	running := call("acme")
	if err := l.Started(ctx, running, nil); err != nil {
		return err
	}
	// The disk is filled by something else, and what room is left by records.
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	input := []byte(`"` + string(make([]byte, 0, 8000)) + `words"`)
	begun := 0
	for ; begun < 10_000; begun++ {
		c := call("acme")
		if err = l.Started(ctx, c, input); err != nil {
			break
		}
		if err = l.Finished(ctx, c, success(), input); err != nil {
			break
		}
	}
	if skill.CodeOf(err) != skill.AuditUnavailable {
		return fmt.Errorf("after %d calls on a full disk: %w", begun, err)
	}
	if err := l.Finished(ctx, running, success(), nil); skill.CodeOf(err) != skill.AuditUnavailable && (err != nil || journal == "") { // a journal may have some room left
		return fmt.Errorf("an end on a full disk: %w", err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	next := call("acme")
	for deadline := time.Now().Add(30 * time.Second); ; {
		if err = l.Started(ctx, next, nil); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := errors.Join(l.Finished(ctx, next, success(), nil), l.Close(ctx)); err != nil {
		return err
	}
	e, err := records.NewStore(db).Execution(ctx, "acme", running.ExecutionID)
	if err != nil || e.Status() != records.Success {
		return fmt.Errorf("the end of a call that ended on a full disk is %+v: %w", e, err)
	}
	left, _, err := records.NewStore(db).Executions(ctx, records.Query{Status: records.Running, Limit: 10})
	if err != nil || len(left) > 0 {
		return fmt.Errorf("%d executions run on record: %w", len(left), err)
	}
	return whole(records.NewStore(db))
}

func whole(s records.Store) error {
	r, err := records.Verify(context.Background(), s, records.VerifyOptions{Rows: true})
	if err == nil && !r.Whole() {
		err = fmt.Errorf("the chain: %+v", r.Chains[0].Fault)
	}
	return err
}

func readOnly(dir string) error {
	remount := func(flags uintptr) error {
		return syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT|flags, "size=4m")
	}
	if err := remount(syscall.MS_RDONLY); err != nil {
		return err
	}
	db, _, err := recording(dir, "")
	if err == nil || skill.CodeOf(err) != skill.AuditUnavailable {
		return fmt.Errorf("a host begins on a read-only disk: %w", err)
	}
	if db != nil {
		_ = db.Close()
	}
	if err := remount(0); err != nil {
		return err
	}
	db, l, err := recording(dir, "")
	if err != nil {
		return err
	}
	defer db.Close()
	c := call("acme")
	if err := l.Started(context.Background(), c, nil); err != nil {
		return err
	}
	return errors.Join(l.Finished(context.Background(), c, success(), nil), l.Close(context.Background()), whole(records.NewStore(db)))
}
