//go:build unix && !race

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// working is a module that counts for some milliseconds and then prints {}.
func working() []byte {
	count := concat([]byte{1, 1, 0x7f, 0x41}, []byte{0xc0, 0xf0, 0xf5, 0x0b}, []byte{0x21, 0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b}) // 25,000,000
	main := concat(count, i32(1, 0, 1, 8), []byte{0x10, 0, 0x1a, 0x0b})
	data := []byte{16, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '{', '}'}
	return concat(magic,
		section(1, 2, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f),
		sectionOf(2, concat(leb(1), name("wasi_snapshot_preview1"), name("fd_write"), []byte{0, 1})),
		section(3, 1, 0),
		section(5, 1, 0, 1),
		sectionOf(7, concat(leb(2), name("_start"), []byte{0, 1}, name("memory"), []byte{2, 0})),
		sectionOf(10, concat(leb(1), leb(len(main)), main)),
		sectionOf(11, concat(leb(1), []byte{0, 0x41, 0, 0x0b}, leb(len(data)), data)),
	)
}

// cluster are hosts with one database, each a process with a state folder of its own.
type cluster struct {
	skills, database string
	states           []string

	mu   sync.Mutex
	host []*killable
	url  []string
	logs []string // of hosts that are gone
}

func (c *cluster) launch(t *testing.T, i int) {
	t.Helper()
	k := &killable{Cmd: exec.CommandContext(t.Context(), "openskill", "serve", "--listen", "127.0.0.1:0", "--skills", c.skills, "--state", c.states[i], "--concurrency", "all:1,skill:1")}
	k.Dir, k.Env = t.TempDir(), append(os.Environ(), "OPENSKILL_DATABASE_URL="+c.database)
	k.Stderr = &k.log
	k.out = bufio.NewScanner(musttest.Get(k.StdoutPipe())(t))
	musttest.Do(t, k.Start())
	if !k.out.Scan() {
		t.Fatalf("the host does not start: %s", k.log.String())
	}
	_, url, _ := strings.Cut(k.out.Text(), "listening on ")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.host[i], c.url[i] = k, url
}

// kill ends a host in the middle of what it does.
func (c *cluster) kill(i int) {
	c.mu.Lock()
	k := c.host[i]
	c.mu.Unlock()
	k.kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logs = append(c.logs, k.log.String())
}

// TestKilledHostsLoseNoCalls kills one of four hosts of a database again and again, while asynchronous calls come that have no place
// and are queued: each call that was accepted ends on record, once, and none runs twice.
// OPENSKILL_KILLS says how often; 200 takes three minutes.
func TestKilledHostsLoseNoCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts again and again")
	}
	pgtest.Need(t)
	t.Parallel()
	kills := 3
	if n, err := strconv.Atoi(os.Getenv("OPENSKILL_KILLS")); err == nil {
		kills = n
	}
	c := &cluster{skills: t.TempDir(), database: pgtest.Start(t), host: make([]*killable, 4), url: make([]string, 4)}
	dir := filepath.Join(c.skills, "one")
	musttest.Do(t, errors.Join(os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "skill.yaml"), []byte("id: one\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: wasi\nentry: m.wasm\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "m.wasm"), working(), 0o600)))
	for i := range 4 {
		c.states = append(c.states, t.TempDir())
		c.launch(t, i)
	}
	var mu sync.Mutex
	accepted, queued := map[string]bool{}, 0
	var calling sync.WaitGroup
	end := make(chan struct{})
	for range 4 {
		calling.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(80 * time.Millisecond):
				}
				c.mu.Lock()
				url := c.url[rand.IntN(4)]
				c.mu.Unlock()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/skills/one:invoke", strings.NewReader(`{"input": {}}`))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Prefer", "respond-async")
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					continue // it was killed
				}
				var a skill.Accepted
				err = json.NewDecoder(res.Body).Decode(&a)
				_ = res.Body.Close()
				if err != nil || res.StatusCode != http.StatusAccepted {
					continue
				}
				mu.Lock()
				if accepted[a.ID] = true; a.Status == "queued" {
					queued++
				}
				mu.Unlock()
			}
		})
	}
	for range kills {
		time.Sleep(time.Duration(rand.Int64N(int64(400 * time.Millisecond))))
		i := rand.IntN(4)
		c.kill(i)
		c.launch(t, i)
	}
	close(end)
	calling.Wait()
	c.counts(t, accepted)
	t.Logf("%d kills: %d calls accepted, %d of them queued", kills, len(accepted), queued)
	if len(accepted) < 10*kills {
		t.Errorf("%d calls were accepted", len(accepted))
	}
}

// counts waits until all calls have ended, and holds what is on record and in the logs of the hosts against them.
func (c *cluster) counts(t *testing.T, accepted map[string]bool) {
	t.Helper()
	db := musttest.Get(store.Open(t.Context(), store.Options{URL: c.database}))(t)
	defer db.Close()
	rows := records.NewStore(db)
	statuses := map[records.Status]int{}
	for id := range accepted {
		for late := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			e, err := rows.Execution(t.Context(), "local", id)
			if err == nil && e.Finished != nil {
				statuses[e.Status()]++
				if e.Status() != records.Success && e.Finished.Code != skill.WorkerCrashed {
					t.Errorf("%s: %+v", id, e.Finished)
				}
				break
			}
			if time.Now().After(late) {
				t.Fatalf("%s, which was accepted: %+v, %v", id, e, err)
			}
		}
	}
	var left int
	musttest.Do(t, db.Read.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM queued_calls) + (SELECT count(*) FROM queued_sums)").Scan(&left))
	if left > 0 {
		t.Errorf("%d rows are left in the queue", left)
	}
	for i := range c.host {
		c.kill(i)
	}
	report := musttest.Get(records.Verify(t.Context(), rows, records.VerifyOptions{Rows: true}))(t)
	for _, chain := range report.Chains {
		if chain.Fault != nil {
			t.Errorf("the chain of %s: %+v", chain.Tenant, chain.Fault)
		}
	}
	seen := map[string]int{}
	for from := uint64(1); ; {
		list := musttest.Get(rows.Records(t.Context(), "local", from, 1000))(t)
		if len(list) == 0 {
			break
		}
		for _, r := range list {
			seen[r.Kind+r.ExecutionID]++
			from = r.Seq + 1
		}
	}
	ran := map[string]int{}
	for _, log := range c.logs {
		for line := range strings.Lines(log) {
			var m struct {
				Msg         string
				Success     bool
				ExecutionID string `json:"execution_id"`
			}
			if json.Unmarshal([]byte(line), &m) == nil && m.Msg == "invoke" && m.Success {
				ran[m.ExecutionID]++
			}
		}
	}
	for id := range accepted {
		if seen[records.KindStarted+id] != 1 || seen[records.KindFinished+id] != 1 || ran[id] > 1 {
			t.Errorf("%s began %d times, ended %d times on record, and ran %d times", id, seen[records.KindStarted+id], seen[records.KindFinished+id], ran[id])
		}
	}
	t.Logf("statuses: %v, %d runs in the logs", statuses, len(ran))
}
