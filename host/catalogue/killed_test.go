package catalogue

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/internal/musttest"
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
	db, err := store.Open(context.Background(), store.Options{StateDir: dir})
	if err != nil {
		return err
	}
	s, err := Open(options(db, dir, func(o *Options) { o.Versions, o.Grace = 10_000, time.Millisecond }))
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		tenant, id, version := fmt.Sprintf("t%d", i%2), skill.ID(fmt.Sprintf("s%d", i%3)), fmt.Sprintf("1.%s.%d", round, i)
		v, err := publish(s, tenant, id, version, version)
		if err != nil {
			return err
		}
		fmt.Println("published", tenant, id, version, v.Digest)
		if _, err := s.decide(to(Enable, tenant, id, version)); err != nil {
			return err
		}
		fmt.Println("enabled", tenant, id, version, v.Digest)
		if i%4 == 3 {
			fmt.Println("deleting", tenant, id, version, v.Digest)
			if _, err := s.decide(to(Delete, tenant, id, version)); err != nil {
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
	out := musttest.Get(cmd.StdoutPipe())(t)
	musttest.Do(t, cmd.Start())
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

	db := musttest.Get(store.Open(t.Context(), store.Options{StateDir: dir}))(t)
	defer db.Close()
	s := musttest.Get(Open(options(db, dir, func(o *Options) { o.Versions = 10_000 })))(t)
	defer s.Close()
	for v, said := range last {
		f := strings.Fields(v)
		found, err := arrived(s, f[0], skill.ID(f[1]), f[2])
		switch {
		case said == "deleted" && err == nil, said != "deleted" && said != "deleting" && err != nil:
			t.Errorf("round %d: %s was %s, and now: %v", round, v, said, err)
		case err == nil && (found.Descriptor.Digest != f[3] || said == "enabled" && !found.Descriptor.Enabled):
			t.Errorf("round %d: %s was %s, and is %+v", round, v, said, found.Descriptor)
		}
	}
	named := 0
	for _, r := range s.skills {
		named += len(r.kept())
	}
	if list := folders(t, s); len(list) > named { // what was deleted a moment ago is not fetched again
		t.Errorf("round %d: %d folders for %d versions", round, len(list), named)
	}
	_ = s.Close() // which waits for what is fetched
	if left, err := os.ReadDir(s.staging()); err != nil || len(left) > 0 {
		t.Errorf("round %d: left in staging: %v, %v", round, left, err)
	}
}

// arrived is Get when the files have come.
func arrived(s *Store, tenant string, id skill.ID, version string) (*manifest.Skill, error) {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		found, err := s.Get(tenant, id, version)
		if err == nil || !strings.Contains(err.Error(), "still being fetched") || time.Now().After(end) {
			return found, err
		}
	}
}
