package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// Audit holds an records.Store to what its comments promise. fresh makes a new, empty one,
// which open opens as often as it is called.
func Audit(t *testing.T, fresh func(t *testing.T) (open func() records.Store)) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, func() records.Store){
		"an execution from its start to its end": lifeOfExecution,
		"artifacts without room":                 artifactsWithoutRoom,
		"tokens that a skill reports":            reportedTokens,
		"written once":                           writtenOnce,
		"who may see one":                        whoSees,
		"eight writers":                          eightWriters,
		"contexts that end":                      contextsEnd,
		"questions":                              questions,
		"pages while rows come in":               pagesMeanwhile,
		"cursors of nobody":                      cursorsOfNobody,
		"orphans":                                orphans,
		"prune":                                  prune,
		"prune waits for what runs":              pruneRunning,
		"changes":                                changes,
		"what is shown":                          shownBeside,
		"strings of strangers":                   stringsOfStrangers,
		"JSON of strangers":                      jsonOfStrangers,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 123456000, time.UTC)

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// begun gives what an execution of a tenant begins with.
func begun(tenant string, when time.Time) *records.Started {
	id := newID()
	return &records.Started{
		ExecutionID: id, Tenant: tenant, Principal: "key:ci", PrincipalType: skill.Agent, Key: "k1", TraceID: "trace-1", Session: id,
		Skill: "echo", Version: "0.1.0", Digest: "sha256:" + strings.Repeat("a", 64), Instance: "host-1", Time: when,
	}
}

// over gives the end of an execution a moment after its beginning.
func over(s *records.Started, status records.Status) *records.Finished {
	f := &records.Finished{ExecutionID: s.ExecutionID, Status: status, Runner: "wasm:wasi", DurationMS: 1, Time: s.Time.Add(time.Millisecond)}
	if status != records.Success {
		f.Code, f.Message = skill.Timeout, "too slow"
	}
	return f
}

func entryOf(s *records.Started) *records.Entry {
	body, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return &records.Entry{
		Record:  records.Record{Tenant: s.Tenant, Kind: records.KindStarted, ExecutionID: s.ExecutionID, Time: s.Time, Body: body},
		Started: s,
	}
}

func endOf(s *records.Started, f *records.Finished) *records.Entry {
	body, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return &records.Entry{
		Record:   records.Record{Tenant: s.Tenant, Kind: records.KindFinished, ExecutionID: s.ExecutionID, Time: f.Time, Body: body},
		Finished: f, Of: s,
	}
}

// write appends and must.
func write(t *testing.T, s records.Store, entries ...*records.Entry) {
	t.Helper()
	musttest.Do(t, put(t.Context(), s, entries...))
}

// put appends, and again what was left out since another one had its chain.
func put(ctx context.Context, s records.Store, entries ...*records.Entry) error {
	for {
		if err := s.Append(ctx, entries); err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(e *records.Entry) bool { return !errors.Is(e.Left, records.ErrHeld) })
		if len(entries) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, e := range entries {
			e.Wait = true
		}
	}
}

// ran puts a whole execution on record.
func ran(t *testing.T, s records.Store, b *records.Started, status records.Status) *records.Started {
	t.Helper()
	write(t, s, entryOf(b), endOf(b, over(b, status)))
	return b
}

// chain reads a tenant's records and holds that each is linked to the one before.
func chain(t *testing.T, s records.Store, tenant string) []records.Record {
	t.Helper()
	heads := musttest.Get(s.Tenants(t.Context()))(t)
	at := slices.IndexFunc(heads, func(h records.Head) bool { return h.Tenant == tenant })
	if at < 0 {
		return nil
	}
	h := heads[at]
	var all []records.Record
	for from := h.First; ; from = all[len(all)-1].Seq + 1 {
		page := musttest.Get(s.Records(t.Context(), tenant, from, 7))(t)
		if all = append(all, page...); len(page) < 7 {
			break
		}
	}
	seq, prev := h.First, h.Prev
	for _, r := range all {
		again := r
		records.Link(prev, &again)
		if r.Seq != seq || r.Prev != prev || r.Hash != again.Hash {
			t.Fatalf("record %d of %q is not linked to %d: %+v", r.Seq, tenant, seq-1, r)
		}
		seq, prev = r.Seq+1, r.Hash
	}
	if seq != h.Last+1 || prev != h.LastHash {
		t.Fatalf("the chain of %q ends at %d with %s, its head says %+v", tenant, seq-1, prev, h)
	}
	return all
}

// same compares executions as JSON, since the JSON in them need not be the same bytes.
func same(t *testing.T, got, want *records.Execution) {
	t.Helper()
	tree := func(e *records.Execution) (v any) {
		b := musttest.Get(json.Marshal(e))(t)
		musttest.Do(t, json.Unmarshal(b, &v))
		return v
	}
	if g, w := tree(got), tree(want); !reflect.DeepEqual(g, w) {
		t.Errorf("got  %v\nwant %v", g, w)
	}
}

func one(t *testing.T, s records.Store, tenant, id string) *records.Execution {
	t.Helper()
	return musttest.Get(s.Execution(t.Context(), tenant, id))(t)
}

func lifeOfExecution(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	began := begun("acme", noon)
	began.Session, began.Iteration, began.Script, began.Owner, began.ReplayOf = newID(), 3, "scripts/run.py", "acme", newID()
	began.Limits = skill.LimitsJSON{TimeoutMS: 1000, Fuel: 1 << 60}
	began.Input = records.Payload{Bytes: 17, SHA256: strings.Repeat("b", 64), JSON: []byte(`{"text": "hello", "n": [1, 2.5, null, true]}`), Truncated: true}
	write(t, s, entryOf(began))
	same(t, one(t, s, "acme", began.ExecutionID), &records.Execution{Started: *began})

	ended := over(began, records.Failed)
	ended.Fuel, ended.MemoryPeak, ended.Tokens = 1<<62, 1<<40, 12
	ended.Output = records.Payload{Bytes: 2, SHA256: strings.Repeat("c", 64), JSON: []byte(`{"answer": "42"}`)}
	ended.Artifacts = []records.ArtifactInfo{{Name: "a.csv", Size: 5, SHA256: strings.Repeat("d", 64)}}
	ended.Processes = &skill.Processes{Started: 2, List: []skill.Process{{ID: 2, Parent: 1, Program: "bash", Exit: 1}, {ID: 3, Parent: 2, Program: "jq", Signal: 9}}}
	write(t, s, endOf(began, ended))
	// Another process sees the same, and what was stored is what was hashed.
	other := open()
	for _, tenant := range []string{"acme", ""} {
		same(t, one(t, other, tenant, began.ExecutionID), &records.Execution{Started: *began, Finished: ended})
	}
	recs := chain(t, other, "acme")
	if len(recs) != 2 || recs[0].Kind != records.KindStarted || recs[1].Kind != records.KindFinished {
		t.Fatalf("got %+v", recs)
	}
	if want := endOf(began, ended); !bytes.Equal(recs[1].Body, want.Body) || !recs[1].Time.Equal(want.Time) {
		t.Errorf("got %s at %v", recs[1].Body, recs[1].Time)
	}
}

// What stands for artifacts that a record has no room for is shown as it is on record.
func artifactsWithoutRoom(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	began := begun("acme", noon)
	ended := over(began, records.Success)
	ended.Artifacts = []records.ArtifactInfo{{Name: "a.csv", Size: 5, SHA256: strings.Repeat("d", 64)}}
	ended.Unlisted = &records.Unlisted{Count: 999, Bytes: 1 << 40, SHA256: strings.Repeat("e", 64)}
	write(t, s, entryOf(began), endOf(began, ended))
	same(t, one(t, open(), "acme", began.ExecutionID), &records.Execution{Started: *began, Finished: ended})
	if r, err := records.Verify(t.Context(), s, records.VerifyOptions{Rows: true}); err != nil || !r.Whole() {
		t.Errorf("%+v, %v", r, err)
	}
}

func writtenOnce(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	a, b := begun("acme", noon), begun("acme", noon.Add(time.Second))
	first := entryOf(a)
	write(t, s, first)
	if first.Seq != 1 || first.Prev != records.Origin {
		t.Errorf("the first record is %+v", first.Record)
	}
	// The answer was lost: the same again, with another one, and twice in one batch.
	write(t, s, entryOf(a), entryOf(b), entryOf(b))
	if n := len(chain(t, s, "acme")); n != 2 {
		t.Errorf("%d records of two starts", n)
	}
	write(t, s, endOf(a, over(a, records.Success)), endOf(a, over(a, records.Failed)))
	late := endOf(a, over(a, records.Terminated))
	write(t, s, late, entryOf(a))
	if late.Seq != 0 {
		t.Errorf("an end that was left out has the number %d", late.Seq)
	}
	if n := len(chain(t, s, "acme")); n != 3 {
		t.Errorf("%d records of two starts and one end", n)
	}
	if e := one(t, s, "acme", a.ExecutionID); e.Status() != records.Success {
		t.Errorf("it ended as %s: the first end counts", e.Status())
	}
	// All of it, in one batch.
	c := begun("acme", noon)
	write(t, s, entryOf(c), endOf(c, over(c, records.Success)), entryOf(c), endOf(c, over(c, records.Success)))
	if e := one(t, s, "acme", c.ExecutionID); e.Status() != records.Success {
		t.Errorf("it ended as %s", e.Status())
	}
	if n := len(chain(t, s, "acme")); n != 5 {
		t.Errorf("%d records of three starts and two ends", n)
	}
	if err := s.Append(t.Context(), nil); err != nil {
		t.Errorf("nothing cannot be appended: %v", err)
	}
}

func whoSees(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	b := ran(t, s, begun("acme", noon), records.Success)
	r := begun("acme", noon)
	write(t, s, entryOf(r))
	for _, id := range []string{b.ExecutionID, r.ExecutionID} {
		if _, err := s.Execution(t.Context(), "other", id); !errors.Is(err, records.ErrNotFound) {
			t.Errorf("another tenant gets %v", err)
		}
	}
	for _, id := range []string{"", "x", newID(), "' OR 1=1 --", strings.Repeat("0", 36), "\x00"} {
		if _, err := s.Execution(t.Context(), "", id); !errors.Is(err, records.ErrNotFound) {
			t.Errorf("%q: got %v", id, err)
		}
	}
	if all, _, err := s.Executions(t.Context(), records.Query{Tenant: "other", Limit: 10}); err != nil || len(all) != 0 {
		t.Errorf("another tenant sees %d, %v", len(all), err)
	}
	if all, err := s.Records(t.Context(), "other", 1, 10); err != nil || len(all) != 0 {
		t.Errorf("another tenant has %d records, %v", len(all), err)
	}
}

func eightWriters(t *testing.T, open func() records.Store) {
	t.Helper()
	const writers, batches, size = 8, 12, 5
	stores := []records.Store{open(), open()}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			s := stores[w%len(stores)]
			for i := range batches {
				var batch []*records.Entry
				for j := range size {
					// One tenant of all, one of this writer, and one that many come to at once.
					for _, tenant := range []string{"all", fmt.Sprint("writer-", w), fmt.Sprint("new-", i*size+j)} {
						b := begun(tenant, noon.Add(time.Duration(i)*time.Second))
						batch = append(batch, entryOf(b), endOf(b, over(b, records.Success)))
					}
				}
				if err := put(t.Context(), s, batch...); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := len(chain(t, stores[0], "all")); n != 2*writers*batches*size {
		t.Errorf("%d records of all, want %d", n, 2*writers*batches*size)
	}
	for w := range writers {
		if n := len(chain(t, stores[0], fmt.Sprint("writer-", w))); n != 2*batches*size {
			t.Errorf("%d records of writer %d", n, w)
		}
	}
	for i := range batches * size {
		if n := len(chain(t, stores[0], fmt.Sprint("new-", i))); n != 2*writers {
			t.Errorf("%d records of new-%d", n, i)
		}
	}
}

func contextsEnd(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b := begun("acme", noon)
	if err := s.Append(ended, []*records.Entry{entryOf(b)}); err == nil {
		t.Error("it was written although nobody waits")
	}
	var mu sync.Mutex
	pairs := map[string]string{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 25 {
				// Whenever it ends: both of a batch are there, or none, or they are on their way.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*40*time.Microsecond)
				a, b := begun("acme", noon), begun("acme", noon)
				err := put(ctx, s, entryOf(a), entryOf(b))
				cancel()
				if _, found := s.Execution(t.Context(), "acme", a.ExecutionID); err == nil && found != nil {
					t.Errorf("what was written is not there: %v", found)
				}
				if err := put(t.Context(), s, entryOf(a), entryOf(b)); err != nil {
					t.Errorf("again: %v", err)
				}
				mu.Lock()
				pairs[a.ExecutionID] = b.ExecutionID
				mu.Unlock()
			}
		})
	}
	all.Wait()
	recs := chain(t, s, "acme")
	if len(recs) != 2*len(pairs) {
		t.Fatalf("%d records, want %d", len(recs), 2*len(pairs))
	}
	for i := 0; i < len(recs); i += 2 { // half a batch would have been filled up later
		if a, b := recs[i].ExecutionID, recs[i+1].ExecutionID; pairs[a] != b {
			t.Errorf("after %s comes %s, not %s, which was in the same batch", a, b, pairs[a])
		}
	}
}

func orphans(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	must := func(err error) {
		t.Helper()
		musttest.Do(t, err)
	}
	var all []*records.Started
	for i, instance := range []string{"alive", "silent", "gone", "unknown"} {
		b := begun("acme", noon.Add(-time.Duration(i)*time.Second))
		b.Instance = instance
		write(t, s, entryOf(b))
		all = append(all, b)
	}
	alive := func(instance string) {
		t.Helper()
		was := time.Now()
		now, err := s.Alive(t.Context(), instance)
		must(err)
		if d := now.Sub(was); d < -time.Minute || d > time.Minute { // the databases of tests are on this machine
			t.Errorf("the time of the database is %s away", d)
		}
	}
	alive("alive")
	alive("alive")
	alive("gone")
	must(s.Gone(t.Context(), "gone"))
	must(s.Gone(t.Context(), "gone"))
	found, err := s.Orphans(t.Context(), time.Minute, 10)
	must(err)
	if len(found) != 3 || found[0].Instance != "unknown" || found[1].Instance != "gone" || found[2].Instance != "silent" {
		t.Fatalf("got %+v, want unknown, gone and silent", found)
	}
	if found, err := s.Orphans(t.Context(), -time.Minute, 10); err != nil || len(found) != 4 { // in a minute, all have been silent
		t.Fatalf("got %+v, %v", found, err)
	}
	same(t, &records.Execution{Started: *found[0]}, &records.Execution{Started: *all[3]})
	if found, err = s.Orphans(t.Context(), time.Minute, 1); err != nil || len(found) != 1 {
		t.Errorf("got %d, %v", len(found), err)
	}
	for _, b := range all[1:] {
		write(t, s, endOf(b, over(b, records.Terminated)))
	}
	if found, err = s.Orphans(t.Context(), time.Minute, 10); err != nil || len(found) != 0 {
		t.Errorf("those that were closed are still there: %+v, %v", found, err)
	}
}

func prune(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	var ids []string
	for i := range 10 {
		ids = append(ids, ran(t, s, begun("acme", noon.Add(time.Duration(i)*time.Hour)), records.Success).ExecutionID)
	}
	kept := ran(t, s, begun("other", noon), records.Success)
	if n, err := s.Prune(t.Context(), "acme", noon, 100); err != nil || n != 0 {
		t.Errorf("nothing is so old, and %d went, %v", n, err)
	}
	if n, err := s.Prune(t.Context(), "nobody", noon, 100); err != nil || n != 0 {
		t.Errorf("of nobody went %d, %v", n, err)
	}
	// In steps: an execution whose first record went stays until its last one goes.
	for _, c := range []struct{ limit, gone, executions, records int }{
		{3, 3, 9, 20 - 3 + 1}, {100, 5, 6, 20 - 8 + 2}, {100, 0, 6, 20 - 8 + 2},
	} {
		n, err := s.Prune(t.Context(), "acme", noon.Add(4*time.Hour), c.limit)
		if err != nil || n != c.gone {
			t.Fatalf("%d went, %v, want %d", n, err, c.gone)
		}
		all, _, err := s.Executions(t.Context(), records.Query{Tenant: "acme", Limit: 100})
		if err != nil || len(all) != c.executions {
			t.Errorf("%d executions stay, %v, want %d", len(all), err, c.executions)
		}
		recs := chain(t, s, "acme")
		if len(recs) != c.records {
			t.Errorf("%d records stay, want %d", len(recs), c.records)
		}
		var p records.Pruned
		last := recs[len(recs)-1]
		if err := json.Unmarshal(last.Body, &p); err != nil || last.Kind != records.KindPruned || p.Next != recs[0].Seq || p.Hash != recs[0].Prev {
			t.Errorf("what was removed is not on record: %+v, %v", last, err)
		}
	}
	if _, err := s.Execution(t.Context(), "acme", ids[0]); !errors.Is(err, records.ErrNotFound) {
		t.Errorf("an old one gives %v", err)
	}
	one(t, s, "acme", ids[4])
	one(t, s, "other", kept.ExecutionID)
	// All of them, the records of removals too.
	far := time.Now().Add(24 * time.Hour)
	if n, err := s.Prune(t.Context(), "acme", far, 100); err != nil || n != 14 {
		t.Errorf("%d went, %v", n, err)
	}
	if recs := chain(t, s, "acme"); len(recs) != 1 || recs[0].Kind != records.KindPruned {
		t.Errorf("got %+v", recs)
	}
	write(t, s, entryOf(begun("acme", noon)))
	chain(t, s, "acme")
}

func pruneRunning(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	ran(t, s, begun("acme", noon), records.Success)
	running := begun("acme", noon)
	write(t, s, entryOf(running))
	ran(t, s, begun("acme", noon), records.Success)
	if n, err := s.Prune(t.Context(), "acme", noon.Add(time.Hour), 100); err != nil || n != 2 {
		t.Errorf("%d went, %v, want 2: the third one runs", n, err)
	}
	write(t, s, endOf(running, over(running, records.Success)))
	if n, err := s.Prune(t.Context(), "acme", noon.Add(time.Hour), 100); err != nil || n < 3 {
		t.Errorf("%d went, %v", n, err)
	}
	chain(t, s, "acme")
}

func stringsOfStrangers(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	long := strings.Repeat("€", 1<<20/3)
	for name, word := range map[string]string{
		"NUL": "a\x00b", "replacement": "a\uFFFDb", "not UTF-8": "a\xff\xfeb", "1 MB": long, "1 MB and more": long + "x",
		"quotes": `'; DROP TABLE execution_logs; --\'"?$1`, "controls": "a\r\n\t\x1b[31m\u202e", "empty": "",
	} {
		b := begun("acme", noon)
		b.Principal, b.TraceID, b.Skill = word, word, word
		f := over(b, records.Failed)
		f.Message, f.Code = word, skill.Code(word)
		if len(word) < 1000 {
			b.Version, b.Digest, b.Key, b.Script, b.Owner, b.Instance, b.Input.SHA256 = word, word, word, word, word, word, word
			f.Runner, f.Artifacts = skill.Kind(word), []records.ArtifactInfo{{Name: word}}
		}
		begin, end := entryOf(b), endOf(b, f)
		write(t, s, begin)
		same(t, one(t, s, "acme", b.ExecutionID), &records.Execution{Started: *b})
		write(t, s, end)
		same(t, one(t, s, "acme", b.ExecutionID), &records.Execution{Started: *b, Finished: f})
		if word == "" {
			continue
		}
		for _, q := range []records.Query{{Principal: word}, {TraceID: word}, {Skill: word}, {Code: word}} {
			q.Tenant, q.Limit = "acme", 10
			all, _, err := s.Executions(t.Context(), q)
			if err != nil || len(all) != 1 || all[0].ExecutionID != b.ExecutionID {
				t.Errorf("%s: a question finds %d, %v", name, len(all), err)
			}
		}
	}
	// A tenant is another one than that whose name comes closest.
	near := ran(t, s, begun("a\uFFFDb", noon), records.Success)
	for _, tenant := range []string{"a\x00b", "a\xffb"} {
		if _, err := s.Execution(t.Context(), tenant, near.ExecutionID); !errors.Is(err, records.ErrNotFound) {
			t.Errorf("%q sees an execution of %q: %v", tenant, near.Tenant, err)
		}
		if all, err := s.Records(t.Context(), tenant, 1, 10); err != nil || len(all) != 0 {
			t.Errorf("%q sees records of %q: %d, %v", tenant, near.Tenant, len(all), err)
		}
		if n, err := s.Prune(t.Context(), tenant, noon.Add(time.Hour), 10); err != nil || n != 0 {
			t.Errorf("%q removes records of %q: %d, %v", tenant, near.Tenant, n, err)
		}
	}
	for _, q := range []records.Query{{Tenant: "a\x00b"}, {Tenant: "a\xffb"}, {Session: "\x00"}, {Status: "\x00"}, {Session: long}, {Tenant: "\xff"}} {
		q.Limit = 10
		if all, _, err := s.Executions(t.Context(), q); err != nil || len(all) != 0 {
			t.Errorf("%+v finds %d, %v", q, len(all), err)
		}
	}
	chain(t, s, "acme")
}

func jsonOfStrangers(t *testing.T, open func() records.Store) {
	t.Helper()
	s := open()
	for name, text := range map[string]string{
		"NUL":                  `{"a\u0000": "\u0000"}`,
		"half a surrogate":     `{"a": "\ud800"}`,
		"surrogates":           `{"a": "\ud83d\ude00"}`,
		"a long number":        `{"a": ` + strings.Repeat("9", 200) + `}`,
		"beyond all numbers":   `[1e300, -1e-300]`,
		"not UTF-8":            "{\"a\": \"\xff\"}",
		"deep":                 strings.Repeat(`[`, 2000) + strings.Repeat(`]`, 2000),
		"escapes":              `{"\\u0000": "\\\\u0000\"", "\n": "\\"}`,
		"twice":                `{"a": 1, "a": 2}`,
		"a string":             `"plain"`,
		"null":                 `null`,
		"1 MB":                 `{"a": "` + strings.Repeat("x", 1<<20) + `"}`,
		"question marks":       `{"?": "?0 ?? $1"}`,
		"a backslash and more": `{"\\": "'\\'"}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := begun("acme", noon)
			b.Input.JSON = []byte(text)
			f := over(b, records.Success)
			f.Output.JSON = []byte(text)
			begin, end := entryOf(b), endOf(b, f)
			write(t, s, begin, end)
			same(t, one(t, s, "acme", b.ExecutionID), &records.Execution{Started: *b, Finished: f})
			recs := chain(t, s, "acme")
			if last := recs[len(recs)-1]; !bytes.Equal(last.Body, end.Body) {
				t.Error("the record is not what was hashed, byte for byte")
			}
		})
	}
}
