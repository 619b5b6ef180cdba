package catalogue

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// The variables of a process that uploads until it is killed; see TestSharedKilled.
const (
	killedURL   = "OPENSKILL_TEST_SHARED_URL"
	killedDir   = "OPENSKILL_TEST_SHARED_DIR"
	killedRound = "OPENSKILL_TEST_SHARED_ROUND"
)

// onDatabase is a host whose uploads are in a real database.
func onDatabase(t *testing.T, url, dir string) *host {
	t.Helper()
	db := musttest.Get(store.Open(t.Context(), store.Options{URL: url}))(t)
	t.Cleanup(func() { db.Close() })
	return newHost(t, db, nil, func(o *Options) { o.Dir, o.Skills, o.Versions = dir, 100_000, 100_000 })
}

// uploadUntilKilled does what hosts do, and says what was acknowledged.
func uploadUntilKilled(t *testing.T) {
	t.Helper()
	h := onDatabase(t, os.Getenv(killedURL), os.Getenv(killedDir))
	for n := 0; ; n++ {
		id := skill.ID(fmt.Sprintf("up-%s-%d", os.Getenv(killedRound), n))
		for _, do := range []struct {
			said string
			act  func() (skill.VersionState, error)
		}{
			{"disabled", func() (skill.VersionState, error) { return h.upload("acme", id, "1.0.0", fmt.Sprintf("%d", n)) }},
			{"enabled", func() (skill.VersionState, error) { return h.store.decide(to(Enable, "acme", id, "")) }},
			{"deleted", func() (skill.VersionState, error) { return h.store.decide(to(Delete, "acme", id, "1.0.0")) }},
		} {
			if do.said == "deleted" && n%3 > 0 {
				continue
			}
			fmt.Println("ACK", id, "begin-"+do.said)
			musttest.Get(do.act())(t)
			fmt.Println("ACK", id, do.said)
		}
	}
}

// A host is killed again and again between database and disk: what was acknowledged is
// there, on it and on another host, and its folder holds nothing else. OPENSKILL_KILLS
// says how often.
func TestSharedKilled(t *testing.T) {
	if os.Getenv(killedURL) != "" {
		uploadUntilKilled(t)
		return
	}
	url, dir := pgtest.Start(t), filepath.Join(t.TempDir(), "killed")
	kills := 5
	if n, err := strconv.Atoi(os.Getenv("OPENSKILL_KILLS")); err == nil {
		kills = n
	}
	acknowledged := 0
	leftovers := t.TempDir()      // what a process that is killed does not tidy up
	said := map[skill.ID]string{} // the last word on each
	for round := range kills {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSharedKilled$")
		cmd.Env = append(os.Environ(), killedURL+"="+url, killedDir+"="+dir, killedRound+"="+strconv.Itoa(round), "TMPDIR="+leftovers)
		out := musttest.Get(cmd.StdoutPipe())(t)
		musttest.Do(t, cmd.Start())
		var kill *time.Timer
		acks := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f := strings.Fields(lines.Text())
			if len(f) != 3 || f[0] != "ACK" {
				continue
			}
			said[skill.ID(f[1])] = f[2]
			if strings.HasPrefix(f[2], "begin-") {
				continue
			}
			if acks++; kill == nil { // it takes some time to start
				kill = time.AfterFunc(time.Duration(rand.IntN(250))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
		}
		_ = cmd.Wait()
		acknowledged += acks
		if acks == 0 || cmd.ProcessState.Exited() {
			t.Fatalf("round %d: it ended by itself", round)
		}
	}
	killed, other := onDatabase(t, url, dir), onDatabase(t, url, filepath.Join(t.TempDir(), "other"))
	may := map[string][]string{ // what may be so after which last word
		"begin-disabled": {"", "disabled"}, "disabled": {"disabled"}, "begin-enabled": {"disabled", "enabled"},
		"enabled": {"enabled"}, "begin-deleted": {"enabled", ""}, "deleted": {""},
	}
	for id, word := range said {
		here, there := killed.arrived("acme", id), other.arrived("acme", id)
		if here != there || !slices.Contains(may[word], here) {
			t.Errorf("%s was %s; it is %q on the host that was killed, and %q on another", id, word, here, there)
		}
	}
	found := musttest.Get(filepath.Glob(filepath.Join(dir, "t-*", "*")))(t)
	t.Logf("%d kills, %d changes acknowledged, the last word on %d skills, %d folders", kills, acknowledged, len(said), len(found))
	if len(found) > len(said) {
		t.Errorf("%d folders for %d skills", len(found), len(said))
	}
}

// arrived is the state of version 1.0.0 of a skill, "" for none, when its files have come.
func (h *host) arrived(tenant string, id skill.ID) string {
	s, err := arrived(h.store, tenant, id, "1.0.0")
	if err != nil {
		return ""
	}
	return string(s.Descriptor.State)
}
