package catalogue

import (
	"bufio"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"openskill/sdk/skill"
)

// childDir is set for a process that uploads until it is killed; see
// TestKilledWhileUploading.
const childDir = "OPENSKILL_TEST_UPLOAD_INTO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, uploadForever(dir, os.Getenv("OPENSKILL_TEST_ROUND")))
		os.Exit(1)
	}
	if dir := os.Getenv(smallDisk); dir != "" {
		os.Exit(onSmallDisk(dir))
	}
	os.Exit(m.Run())
}

// uploadForever publishes, enables and deletes, and says on standard output what was
// acknowledged.
func uploadForever(dir, round string) error {
	s, err := Open(Options{Dir: dir, Read: read, Versions: 10_000, Grace: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if p := s.Problems(); len(p) > 0 {
		return fmt.Errorf("problems: %v", p)
	}
	for i := 0; ; i++ {
		tenant, id, version := fmt.Sprintf("t%d", i%2), skill.ID(fmt.Sprintf("s%d", i%3)), fmt.Sprintf("1.%s.%d", round, i)
		v, err := publish(s, tenant, id, version, version)
		if err != nil {
			return err
		}
		fmt.Println("published", tenant, id, version, v.Digest)
		if _, err := s.Enable(tenant, id, version, By{ID: "child"}); err != nil {
			return err
		}
		fmt.Println("enabled", tenant, id, version, v.Digest)
		if i%4 == 3 {
			fmt.Println("deleting", tenant, id, version, v.Digest)
			if _, err := s.Delete(tenant, id, version, By{}); err != nil {
				return err
			}
			fmt.Println("deleted", tenant, id, version, v.Digest)
			s.Sweep()
		}
	}
}

// TestKilledWhileUploading kills a process that uploads, at random moments: what was
// acknowledged is there, what was not is there whole or not at all, and every start
// is clean. OPENSKILL_KILLS says how often; 200 takes a minute or two.
func TestKilledWhileUploading(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	kills := 20
	if n, err := strconv.Atoi(os.Getenv("OPENSKILL_KILLS")); err == nil {
		kills = n
	}
	dir := t.TempDir()
	last := map[string]string{} // what was said last of each version
	for round := range kills {
		killOne(t, dir, round, last)
		if t.Failed() {
			return
		}
	}
	if len(last) < kills/2 {
		t.Errorf("%d uploads were acknowledged in %d rounds", len(last), kills)
	}
	t.Logf("%d processes killed, %d uploads acknowledged", kills, len(last))
}

func killOne(t *testing.T, dir string, round int, last map[string]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("OPENSKILL_TEST_ROUND=%d", round))
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Duration(5+rand.IntN(300))*time.Millisecond, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) != 5 {
			break // it was killed in the middle of a line
		}
		last[strings.Join(f[1:], " ")] = f[0]
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("round %d: it ended by itself: %v", round, err)
	}

	s, err := Open(options(dir, func(o *Options) { o.Versions = 10_000 }))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if p := s.Problems(); len(p) > 0 {
		t.Errorf("round %d: problems: %v", round, p)
	}
	for v, said := range last {
		f := strings.Fields(v)
		found, err := s.Get(f[0], skill.ID(f[1]), f[2])
		switch {
		case said == "deleted" && err == nil, said != "deleted" && said != "deleting" && err != nil:
			t.Errorf("round %d: %s was %s, and now: %v", round, v, said, err)
		case err == nil && (found.Descriptor.Digest != f[3] || said == "enabled" && !found.Descriptor.Enabled):
			t.Errorf("round %d: %s was %s, and is %+v", round, v, said, found.Descriptor)
		}
	}
	for k, st := range s.skills { // nothing beside what the record lists
		entries, err := os.ReadDir(s.at(k))
		if err != nil || len(entries) != len(st.onDisk())+1 {
			t.Errorf("round %d: %d files for %d versions of %v, %v", round, len(entries), len(st.Versions), k, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, ".staging")); err != nil || len(left) > 0 {
		t.Errorf("round %d: left in staging: %v, %v", round, left, err)
	}
}
