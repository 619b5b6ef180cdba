package app

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/app/config"
	"openskill/host/catalogue"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// onServer are settings of a host on the database server.
func onServer(t *testing.T, url string) *config.Settings {
	t.Helper()
	s := settings(t, nil)
	s.DatabaseURL = url
	return s
}

// soon asks until the answer is the one that is wanted, and says how long that took.
func soon(t *testing.T, what, want string, ask func() answer) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		a := ask()
		took := time.Since(begin)
		if a.got() == want {
			t.Logf("%s: after %s", what, took.Round(time.Millisecond))
			return took
		}
		if took > 30*time.Second {
			t.Fatalf("%s: %s, want %s (%+v)", what, a.got(), want, a.Error)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

// Two hosts on one PostgreSQL: what is uploaded or changed on one holds on the other.
func TestTwoHosts(t *testing.T) {
	url := pgtest.Start(t)
	second := onServer(t, url)
	drained := func(v *serving) *serving { // it logs every call, and its log is not read
		go func() {
			for v.log.Scan() {
			}
		}()
		return v
	}
	one, two := drained(serve(t, onServer(t, url))), drained(serve(t, second))
	up := func(v, text string) map[string][]byte {
		return map[string][]byte{"archive": zipped(t, map[string]string{"up/skill.yaml": manifestOf("up", v, wasiEntry), "up/m.wasm": string(says(text, 0))})}
	}
	first := one.upload(t, "", up("1.0.0", `{"v": 1}`))
	expect(t, "the upload", first, "201 1.0.0 disabled")
	expect(t, "the same on the other host at once", two.upload(t, "", up("1.0.0", `{"v": 1}`)), "409 CONFLICT")
	expect(t, "enabling on the other host at once", two.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	soon(t, "a call on the host that it was enabled on", `200 {"v":1}`, func() answer { return two.call(t, "up") })
	soon(t, "a call on the host that it was uploaded to", `200 {"v":1}`, func() answer { return one.call(t, "up") })
	if a := two.call(t, "up"); a.Meta.Digest != first.Digest {
		t.Errorf("the digest is %s on one host and %s on the other", first.Digest, a.Meta.Digest)
	}
	expect(t, "a new version on the other", two.upload(t, "", up("1.1.0", `{"v": 2}`)), "201 1.1.0 disabled")
	expect(t, "enabled there", two.act(t, "up", "enable", ""), "200 1.1.0 enabled")
	soon(t, "the new version on the first", `200 {"v":2}`, func() answer { return one.call(t, "up") })

	// The operator's own.
	expect(t, "disabling", one.act(t, "quick", "disable", ""), "200 0.1.0 disabled")
	soon(t, "disabled on the other", "404 NOT_FOUND", func() answer { return two.call(t, "quick") })
	expect(t, "back", two.do(t, "PATCH", "/skills/quick", "application/json", []byte(`{"is_enabled": null}`)), "200 0.1.0 ")
	soon(t, "back on the first", "200 {}", func() answer { return one.call(t, "quick") })

	// Many uploads of one version on both: one wins (U07).
	var wait sync.WaitGroup
	answers := make([]answer, 8)
	for i := range answers {
		v := []*serving{one, two}[i%2]
		archive := map[string][]byte{"archive": zipped(t, map[string]string{"skill.yaml": manifestOf("race", "1.0.0", wasiEntry), "m.wasm": string(says(fmt.Sprintf(`{"v": %d}`, i), 0))})}
		wait.Go(func() { answers[i] = v.upload(t, "", archive) })
	}
	wait.Wait()
	won := -1
	for i, a := range answers {
		switch a.got() {
		case "201 1.0.0 disabled":
			if won >= 0 {
				t.Errorf("%d and %d have won", won, i)
			}
			won = i
		case "409 CONFLICT":
		default:
			t.Errorf("%d: %s %+v", i, a.got(), a.Error)
		}
	}
	expect(t, "enabling the one", one.act(t, "race", "enable", ""), "200 1.0.0 enabled")
	for _, v := range []*serving{one, two} {
		soon(t, "the one that has won", fmt.Sprintf(`200 {"v":%d}`, won), func() answer { return v.call(t, "race") })
	}

	// A host that was away, and has lost its files, catches up when it starts.
	musttest.Do(t, two.stop())
	expect(t, "a version meanwhile", one.upload(t, "", up("1.2.0", `{"v": 3}`)), "201 1.2.0 disabled")
	expect(t, "enabled meanwhile", one.act(t, "up", "enable", ""), "200 1.2.0 enabled")
	expect(t, "deleted meanwhile", one.do(t, "DELETE", "/skills/race/versions/1.0.0", "", nil), "200 1.0.0 deleted")
	lost, err := filepath.Glob(filepath.Join(uploadsDir(second.StateDir), "t-local", strings.TrimPrefix(first.Digest, "sha256:")))
	if err != nil || len(lost) != 1 {
		t.Fatalf("%v, %v", lost, err)
	}
	musttest.Do(t, os.Rename(lost[0], filepath.Join(t.TempDir(), "lost")))
	two = drained(serve(t, second))
	soon(t, "after the restart", `200 {"v":3}`, func() answer { return two.call(t, "up") })
	soon(t, "the old version after the restart", `200 {"v":1}`, func() answer {
		return two.do(t, "POST", "/skills/up:invoke", "application/json", []byte(`{"input": {}, "version": "1.0.0"}`))
	})
	expect(t, "what was deleted", two.call(t, "race"), "404 NOT_FOUND")
}

// With SQLite too: what another process changes of the operator's skills, as the command
// line does, a host that runs has soon.
func TestChangedByAnotherProcess(t *testing.T) {
	s := settings(t, nil)
	v := serve(t, s)
	expect(t, "before", v.call(t, "quick"), "200 {}")
	own := musttest.Get(Catalogue(s, Roots(s, nil)))(t)
	db := musttest.Get(OpenStore(t.Context(), s, slog.New(slog.DiscardHandler)))(t)
	defer db.Close()
	all := musttest.Get(Definitions(t.Context(), s, db, catalogue.DefinitionOptions{Own: own}))(t)
	musttest.Get(all.Disable(t.Context(), skill.Local(), "quick"))(t)
	soon(t, "disabled", "404 NOT_FOUND", func() answer { return v.call(t, "quick") })
	musttest.Get(all.Enable(t.Context(), skill.Local(), "quick"))(t)
	soon(t, "enabled", "200 {}", func() answer { return v.call(t, "quick") })
}
