//go:build unix && !race

package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// 25,000,000, 100,000,000 and 1,500,000,000 as operands of i32.const.
var (
	aWhile = []byte{0xc0, 0xf0, 0xf5, 0x0b}
	longer = []byte{0x80, 0xc2, 0xd7, 0x2f}
	long   = []byte{0x80, 0xde, 0xa0, 0xcb, 0x05}
)

// working is a module that counts down and then prints {}.
func working(from []byte) []byte {
	count := concat([]byte{1, 1, 0x7f, 0x41}, from, []byte{0x21, 0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b})
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

// sleeping is a module that sleeps for some seconds and then prints {}.
func sleeping(seconds int) []byte {
	main := concat(i32(64, 128, 1, 192), []byte{0x10, 1, 0x1a}, i32(1, 0, 1, 8), []byte{0x10, 0, 0x1a, 0x0b})
	data := make([]byte, 64+48)
	data[0], data[4], data[16], data[17] = 16, 2, '{', '}'
	binary.LittleEndian.PutUint32(data[64+16:], 1) // the monotonic clock
	binary.LittleEndian.PutUint64(data[64+24:], uint64(seconds)*1e9)
	return concat(magic,
		section(1, 2, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f),
		sectionOf(2, concat(leb(2), name("wasi_snapshot_preview1"), name("fd_write"), []byte{0, 1}, name("wasi_snapshot_preview1"), name("poll_oneoff"), []byte{0, 1})),
		section(3, 1, 0),
		section(5, 1, 0, 1),
		sectionOf(7, concat(leb(2), name("_start"), []byte{0, 2}, name("memory"), []byte{2, 0})),
		sectionOf(10, concat(leb(1), leb(len(main)+1), []byte{0}, main)),
		sectionOf(11, concat(leb(1), []byte{0, 0x41, 0, 0x0b}, leb(len(data)), data)),
	)
}

// times is how often, or for how long, a test does something: n, unless a variable says otherwise.
func times(variable string, n int) int {
	if given, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return given
	}
	return n
}

// cluster is several hosts with one database. Each is a process and has a state folder.
type cluster struct {
	skills, database string
	states           []string
	concurrency      string // of each host
	program          string // "": this one

	mu   sync.Mutex
	host []*killable
	url  []string
	logs []string // of hosts that are gone
}

func newCluster(t *testing.T, database string, hosts int) *cluster {
	t.Helper()
	c := &cluster{skills: t.TempDir(), database: database, concurrency: "all:1,skill:1"}
	for id, module := range map[string][]byte{"one": working(aWhile), "second": working(longer), "long": working(long)} {
		c.skill(t, id, "", module)
	}
	c.start(t, hosts)
	return c
}

// skill writes a skill, with more lines of its manifest.
func (c *cluster) skill(t *testing.T, id, more string, module []byte) {
	t.Helper()
	dir := filepath.Join(c.skills, id)
	musttest.Do(t, errors.Join(os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "skill.yaml"), []byte("id: "+id+"\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: wasi\nentry: m.wasm\n"+more), 0o600),
		os.WriteFile(filepath.Join(dir, "m.wasm"), module, 0o600)))
}

func (c *cluster) start(t *testing.T, hosts int) {
	t.Helper()
	c.host, c.url = make([]*killable, hosts), make([]string, hosts)
	for i := range hosts {
		c.states = append(c.states, t.TempDir())
		c.launch(t, i)
	}
}

func (c *cluster) launch(t *testing.T, i int) {
	t.Helper()
	k := &killable{Cmd: exec.CommandContext(t.Context(), cmp.Or(c.program, "openskill"), "serve", "--listen", "127.0.0.1:0", "--skills", c.skills, "--state", c.states[i], "--concurrency", c.concurrency)}
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

// reply is the answer to a call.
type reply struct {
	skill.Result
	ID, Status string // of a call that was accepted
	code       int
	err        error // of the connection or of reading the answer
}

// load has clients call the hosts, each again after a pause. ask says which host and skill a client calls, and whether it waits
// for the result; told gets one answer at a time. stop ends the load.
func (c *cluster) load(t *testing.T, clients int, pause time.Duration, ask func(client int) (host int, id string, async bool), told func(reply)) (stop func()) {
	t.Helper()
	var mu sync.Mutex
	var calling sync.WaitGroup
	end := make(chan struct{})
	for i := range clients {
		calling.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(pause):
				}
				mu.Lock()
				host, id, async := ask(i)
				mu.Unlock()
				c.mu.Lock()
				url := c.url[host]
				c.mu.Unlock()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/skills/"+id+":invoke", strings.NewReader(`{"input": {}}`))
				if err != nil {
					t.Error(err)
					return
				}
				req.Close = true
				if async {
					req.Header.Set("Prefer", "respond-async")
				}
				var a reply
				res, err := http.DefaultClient.Do(req)
				if err == nil {
					a.code, err = res.StatusCode, json.NewDecoder(res.Body).Decode(&a)
					_ = res.Body.Close()
				}
				a.err = err
				mu.Lock()
				told(a)
				mu.Unlock()
			}
		})
	}
	return func() {
		close(end)
		calling.Wait()
	}
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
// and are queued: each call that was accepted ends on record, once, and none runs twice. Those of an idempotent skill all succeed.
// OPENSKILL_KILLS says how often; 200 takes three minutes.
func TestKilledHostsLoseNoCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts again and again")
	}
	pgtest.Need(t)
	t.Parallel()
	kills := times("OPENSKILL_KILLS", 3)
	c := &cluster{skills: t.TempDir(), database: pgtest.Start(t), concurrency: "all:1,skill:1"}
	c.skill(t, "one", "", working(aWhile))
	c.skill(t, "again", "idempotent: true\n", working(aWhile))
	c.start(t, 4)
	accepted, queued := map[string]bool{}, 0
	stop := c.load(t, 4, 80*time.Millisecond, func(i int) (int, string, bool) { return rand.IntN(4), []string{"one", "again"}[i%2], true }, func(a reply) {
		if a.err != nil || a.code != http.StatusAccepted {
			return // the host was killed
		}
		if accepted[a.ID] = true; a.Status == "queued" {
			queued++
		}
	})
	for range kills {
		time.Sleep(time.Duration(rand.Int64N(int64(400 * time.Millisecond))))
		i := rand.IntN(4)
		c.kill(i)
		c.launch(t, i)
	}
	stop()
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
				if e.Status() != records.Success && e.Skill == "again" || e.Status() != records.Success && e.Finished.Code != skill.WorkerCrashed {
					t.Errorf("%s: %+v", id, e.Finished)
				}
				break
			}
			if time.Now().After(late) {
				t.Fatalf("%s, which was accepted: %+v, %v", id, e, err)
			}
		}
	}
	for left, late := 1, time.Now().Add(time.Minute); left > 0; time.Sleep(20 * time.Millisecond) {
		musttest.Do(t, db.Read.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM queued_calls) + (SELECT count(*) FROM queued_sums)").Scan(&left))
		if time.Now().After(late) {
			t.Fatalf("%d rows are left in the queue", left)
		}
	}
	resumed := musttest.Get(rows.Changes(t.Context(), records.ChangeQuery{Tenant: "local", Limit: 1000}))(t)
	resumed = slices.DeleteFunc(resumed, func(c records.Change) bool { return c.Action != records.ResumeExecution })
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
	t.Logf("statuses: %v, %d runs in the logs, calls began again %d times", statuses, len(ran), len(resumed))
}

// TestStoppedHost stops the process of a host, which holds a running call and queued ones that it has taken, for longer than others wait for its
// heartbeat, and lets it go on: its late result is refused, and each call has one beginning and one end on record.
// OPENSKILL_STOPPED says for how many seconds.
func TestStoppedHost(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until a host counts as gone")
	}
	pgtest.Need(t)
	t.Parallel()
	stopped := times("OPENSKILL_STOPPED", 25)
	c := newCluster(t, pgtest.Start(t), 2)
	accepted := map[string]bool{}
	ask := func(skillID string, header ...string) (*http.Response, []byte, error) {
		req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, c.url[0]+"/skills/"+skillID+":invoke", strings.NewReader(`{"input": {}}`)))(t)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, nil, err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return res, body, err
	}
	type answer struct {
		r   skill.Result
		err error
	}
	late := make(chan answer, 1)
	go func() {
		var a answer
		_, body, err := ask("long")
		a.err = errors.Join(err, json.Unmarshal(body, &a.r))
		late <- a
	}()
	db := musttest.Get(store.Open(t.Context(), store.Options{URL: c.database}))(t)
	defer db.Close()
	rows := records.NewStore(db)
	var running string
	for end := time.Now().Add(time.Minute); running == ""; time.Sleep(time.Millisecond) {
		if list, _, err := rows.Executions(t.Context(), records.Query{Status: records.Running, Skill: "long", Limit: 1}); err == nil && len(list) == 1 {
			running = list[0].ExecutionID
		} else if time.Now().After(end) {
			t.Fatalf("it does not begin: %v", err)
		}
	}
	for range 5 {
		res, body, err := ask("one", "Prefer", "respond-async")
		var a skill.Accepted
		if err := errors.Join(err, json.Unmarshal(body, &a)); err != nil || res.StatusCode != http.StatusAccepted || a.Status != "queued" {
			t.Fatalf("%s, %v", body, err)
		}
		accepted[a.ID] = true
	}
	musttest.Do(t, c.host[0].Process.Signal(syscall.SIGSTOP))
	began := time.Now()
	var ended time.Duration // until the other host has ended what the stopped one ran
	for time.Since(began) < time.Duration(stopped)*time.Second || ended == 0 && time.Since(began) < 2*time.Minute {
		if e, err := rows.Execution(t.Context(), "local", running); ended == 0 && err == nil && e.Finished != nil {
			ended = time.Since(began)
		}
		time.Sleep(100 * time.Millisecond)
	}
	musttest.Do(t, c.host[0].Process.Signal(syscall.SIGCONT))
	a := <-late
	e := musttest.Get(rows.Execution(t.Context(), "local", running))(t)
	if a.err != nil || a.r.Success || a.r.Error.Code != skill.AuditUnavailable || e.Finished == nil || e.Finished.Code != skill.WorkerCrashed {
		t.Errorf("the late answer is %+v, %v; on record is %+v", a.r.Error, a.err, e.Finished)
	}
	t.Logf("stopped for %d s: the other host ended its call after %s", stopped, ended.Round(100*time.Millisecond))
	c.counts(t, accepted)
}
