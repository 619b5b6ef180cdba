package records

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"openskill/host/store"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// An execution in columns. Strangers choose parts of it, and PostgreSQL does not hold all
// that Go and JSON do: the columns then have what comes closest, and the column exact has
// the execution. So every run is on record, whatever it was given.

// logRowOf are the columns of execution_logs with their types on PostgreSQL, as logRow
// writes and scanLog reads them.
const logRowOf = `id uuid, principal_id text, principal_type text, session_id uuid, skill_name text, iteration_index bigint,
	input_params jsonb, output_result jsonb, token_usage bigint, duration_ms bigint, status text, error_message text, created_at timestamptz,
	tenant text, api_key text, trace_id text, owner text, script text, version text, digest text, runner text, code text,
	fuel bigint, memory_peak bigint, limits jsonb, instance text, replay_of text,
	input_bytes bigint, input_sha256 text, input_truncated boolean, output_bytes bigint, output_sha256 text, output_truncated boolean,
	artifacts jsonb, finished_at timestamptz, reported_tokens bigint, processes jsonb, exact bytea`

// The longest texts that columns hold, in characters.
const (
	mostPrincipal = 200
	mostSkill     = 100
	mostWord      = 200     // what hosts choose, and traces
	mostText      = 1 << 20 // messages
)

// fit makes text fit a column of most characters. Two that differ stay different: of what
// does not fit, the digest is kept. Questions go through it as well.
func fit(s string, most int) string {
	p := store.Plain(s)
	if p == s && (len(s) <= most || utf8.RuneCountInString(s) <= most) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	end := "…" + hex.EncodeToString(sum[:16])
	keep := most - utf8.RuneCountInString(end)
	for i := range p {
		if keep == 0 {
			return p[:i] + end
		}
		keep--
	}
	return p + end
}

// narrow makes columns of values, and notes when one of them lost something.
type narrow struct{ lost bool }

func (n *narrow) text(s string, most int) string {
	f := fit(s, most)
	n.lost = n.lost || f != s
	return f
}

func (n *narrow) number(v int64, most int64) int64 {
	n.lost = n.lost || v > most || v < 0
	return min(max(v, 0), most)
}

func (n *narrow) count(v uint64) int64 {
	n.lost = n.lost || v > math.MaxInt64
	return int64(min(v, math.MaxInt64))
}

// json gives a column of JSON, NULL where there is none or PostgreSQL would refuse or change it.
func (n *narrow) json(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	if !jsonFits(raw) {
		n.lost = true
		return nil
	}
	return string(raw)
}

// jsonFits reports whether JSONB takes raw and gives back an equal text. It does not take
// \u0000 and halves of surrogate pairs, writes out every digit of an exponent, drops the sign
// of zero, and keeps the last of a doubled key. jsonFits rather says no.
func jsonFits(raw []byte) bool {
	whole := append(append([]byte(`{"":`), raw...), '}')
	if strictjson.Object(whole, func(_, value []byte) error {
		if !bytes.Equal(value, bytes.TrimSpace(raw)) {
			return errors.New("more than one value")
		}
		return numbersFit(value)
	}) != nil {
		return false
	}
	for i := bytes.IndexByte(raw, '\\'); i >= 0 && i < len(raw); i++ {
		if raw[i] == '\\' {
			if i++; bytes.HasPrefix(raw[i:], []byte("u0000")) {
				return false
			}
		}
	}
	return true
}

// numbersFit refuses a JSON text with a number that JSONB would give back as another text.
func numbersFit(raw []byte) error {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case c == '-' || c >= '0' && c <= '9':
			begin := i
			for i+1 < len(raw) && strings.IndexByte("+-.eE0123456789", raw[i+1]) >= 0 {
				i++
			}
			number := raw[begin : i+1]
			if len(number) > 1000 || bytes.ContainsAny(number, "eE") || c == '-' && len(bytes.Trim(number, "-0.")) == 0 {
				return errors.New("the number would change")
			}
		}
	}
	return nil
}

// logRow gives the columns of an execution that ended.
func logRow(s *Started, f *Finished) ([]any, error) {
	var n narrow
	limits, err := json.Marshal(s.Limits)
	if err != nil {
		return nil, err
	}
	var artifacts []byte
	if n.lost = f.Unlisted != nil; f.Artifacts != nil && !n.lost { // no column has what stands for the others
		if artifacts, err = json.Marshal(f.Artifacts); err != nil {
			return nil, err
		}
	}
	var processes []byte
	if f.Processes != nil {
		if processes, err = json.Marshal(f.Processes); err != nil {
			return nil, err
		}
	}
	n.lost = n.lost || s.Files != nil || s.Parent != "" || s.Workspace != "" // no column has them
	args := append(make([]any, 0, 38),
		strings.ToLower(s.ExecutionID), n.text(s.Principal, mostPrincipal), string(s.PrincipalType), strings.ToLower(s.Session), n.text(s.Skill, mostSkill),
		n.number(int64(s.Iteration), math.MaxInt32),
		n.json(s.Input.JSON), n.json(f.Output.JSON), n.number(int64(f.Tokens), math.MaxInt32), n.number(f.DurationMS, math.MaxInt32),
		string(f.Status), n.text(f.Message, mostText), store.Time{Time: store.Micro(s.Time)},
		s.Tenant, n.text(s.Key, mostWord), n.text(s.TraceID, mostWord), n.text(s.Owner, mostWord), n.text(s.Script, mostText),
		n.text(s.Version, mostWord), n.text(s.Digest, mostWord), n.text(string(f.Runner), mostWord), n.text(string(f.Code), mostWord),
		n.count(f.Fuel), n.count(f.MemoryPeak),
		string(limits), n.text(s.Instance, mostWord), n.text(s.ReplayOf, mostWord), s.Input.Bytes, n.text(s.Input.SHA256, mostWord), s.Input.Truncated,
		f.Output.Bytes, n.text(f.Output.SHA256, mostWord), f.Output.Truncated, n.json(artifacts), store.Time{Time: store.Micro(f.Time)}, n.number(int64(f.Reported), math.MaxInt32), n.json(processes),
	)
	var exact []byte // NULL
	if n.lost {
		if exact, err = json.Marshal(exactly{s, f}); err != nil {
			return nil, err
		}
	}
	return append(args, exact), nil
}

// exactly is the column exact.
type exactly struct {
	Started  *Started  `json:"started"`
	Finished *Finished `json:"finished"`
}

// logColumns are the names of the columns of logRowOf.
var logColumns, _ = split(logRowOf)

// scanLog reads the columns of logRowOf. The id, the tenant and the time are those of the
// columns, by which rows are found.
func scanLog(rows *sql.Rows) (*Execution, error) {
	e := &Execution{Finished: &Finished{}}
	s, f := &e.Started, e.Finished
	l := &lax{names: logColumns}
	var created, finished store.Time
	var input, output, limits, artifacts, processes, exact []byte
	err := rows.Scan(
		laxly(l, &s.ExecutionID), laxly(l, &s.Principal), laxly(l, &s.PrincipalType), laxly(l, &s.Session), laxly(l, &s.Skill), laxly(l, &s.Iteration),
		laxly(l, &input), laxly(l, &output), laxly(l, &f.Tokens), laxly(l, &f.DurationMS), laxly(l, &f.Status), laxly(l, &f.Message), laxly(l, &created),
		laxly(l, &s.Tenant), laxly(l, &s.Key), laxly(l, &s.TraceID), laxly(l, &s.Owner), laxly(l, &s.Script),
		laxly(l, &s.Version), laxly(l, &s.Digest), laxly(l, &f.Runner), laxly(l, &f.Code), laxly(l, &f.Fuel), laxly(l, &f.MemoryPeak),
		laxly(l, &limits), laxly(l, &s.Instance), laxly(l, &s.ReplayOf), laxly(l, &s.Input.Bytes), laxly(l, &s.Input.SHA256), laxly(l, &s.Input.Truncated),
		laxly(l, &f.Output.Bytes), laxly(l, &f.Output.SHA256), laxly(l, &f.Output.Truncated), laxly(l, &artifacts), laxly(l, &finished), laxly(l, &f.Reported), laxly(l, &processes), laxly(l, &exact),
	)
	if err != nil {
		return nil, err
	}
	f.ExecutionID = s.ExecutionID
	s.Time, f.Time = l.time("created_at", created), l.time("finished_at", finished)
	s.Input.JSON, f.Output.JSON = l.valid("input_params", input), l.valid("output_result", output)
	l.decode("limits", limits, &s.Limits)
	l.decode("artifacts", artifacts, &f.Artifacts)
	l.decode("processes", processes, &f.Processes)
	if exact != nil {
		x := exactly{&Started{}, &Finished{}}
		switch err := json.Unmarshal(exact, &x); {
		case err != nil || x.Started == nil || x.Finished == nil, strings.ToLower(x.Started.ExecutionID) != s.ExecutionID, x.Started.Tenant != s.Tenant, !store.Micro(x.Started.Time).Equal(s.Time):
			l.note("exact")
		default:
			c, status, code := *s, f.Status, f.Code
			*s, *f, l.wrong = *x.Started, *x.Finished, nil
			l.found(&c, s)
			l.same("status", status == f.Status)
			l.same("code", fits(string(code), string(f.Code), mostWord))
		}
	}
	e.Damaged = l.damage()
	return e, nil
}

// runningRow gives the columns of an execution that began, of which body is the record.
func runningRow(s *Started, body []byte) []any {
	return []any{ // in the order of runningColumns
		strings.ToLower(s.ExecutionID), s.Tenant, fit(s.Principal, mostPrincipal), fit(s.Skill, mostSkill), strings.ToLower(s.Session), fit(s.TraceID, mostWord),
		fit(s.Instance, mostWord),
		store.Time{Time: store.Micro(s.Time)},
		body,
	}
}

// runningColumns are the columns of running_executions.
var runningColumns, _ = split(runningRowOf)

const runningRowOf = `id uuid, tenant text, principal_id text, skill_name text, session_id uuid, trace_id text, instance text,
	created_at timestamptz, started bytea`

// scanRunning reads these columns. The columns by which rows are found say what they are.
func scanRunning(rows *sql.Rows) (*Execution, error) {
	var c, s Started
	var created store.Time
	var body []byte
	l := &lax{names: runningColumns}
	err := rows.Scan(laxly(l, &c.ExecutionID), laxly(l, &c.Tenant), laxly(l, &c.Principal), laxly(l, &c.Skill), laxly(l, &c.Session), laxly(l, &c.TraceID),
		laxly(l, &c.Instance), laxly(l, &created), laxly(l, &body))
	if err != nil {
		return nil, err
	}
	c.Time, c.PrincipalType = l.time("created_at", created), skill.Anonymous
	if json.Unmarshal(body, &s) != nil || strings.ToLower(s.ExecutionID) != c.ExecutionID || s.Tenant != c.Tenant || !store.Micro(s.Time).Equal(c.Time) {
		l.note("started")
		s = c
	}
	l.found(&c, &s)
	s.On = c.Instance
	return &Execution{Started: s, Damaged: l.damage()}, nil
}

// found notes the columns by which lists find an execution that are not what the record beside
// them says: they would hide it.
func (l *lax) found(columns, s *Started) {
	l.same("principal_id", fits(columns.Principal, s.Principal, mostPrincipal))
	l.same("skill_name", fits(columns.Skill, s.Skill, mostSkill))
	l.same("session_id", columns.Session == strings.ToLower(s.Session))
	l.same("trace_id", fits(columns.TraceID, s.TraceID, mostWord))
}

// fits reports whether a column has what fit makes of a text of a record. Of what was not
// UTF-8 the record has less than the digest in the column is of.
func fits(column, text string, most int) bool {
	if column == fit(text, most) {
		return true
	}
	const digest = len("…") + 32
	if !strings.ContainsRune(text, utf8.RuneError) || len(column) < digest {
		return false
	}
	// One stands for each byte in the record, and for several together in the column.
	once := func(s string) string {
		for strings.Contains(s, "\uFFFD\uFFFD") {
			s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
		}
		return s
	}
	return strings.HasPrefix(once(store.Plain(text)), once(column[:len(column)-digest]))
}

// checkEntry refuses what no host writes: an entry that does not say one thing.
func checkEntry(e *Entry) error {
	wrong := func(what string) error {
		return &skill.Error{Op: "store.Append", Code: skill.Internal, Subject: "entry", Message: "the record cannot be written: " + what}
	}
	if c := e.Change; c != nil {
		switch {
		case e.Kind != KindChange || e.Started != nil || e.Finished != nil:
			return wrong("it is not of one kind")
		case e.Tenant == "" || len(e.Tenant) > mostWord || store.Plain(e.Tenant) != e.Tenant:
			return wrong("a tenant is 1 to 200 bytes of UTF-8 without NUL")
		case c.Tenant != e.Tenant || c.ID != e.ExecutionID || !store.IsUUID(c.ID) || !c.Time.Equal(e.Time) || e.Time.IsZero() || len(e.Body) == 0:
			return wrong("it does not say what its change is")
		}
		return nil
	}
	kinds := map[string]bool{KindStarted: e.Started != nil, KindFinished: e.Finished != nil}
	of := e.Started
	if f := e.Finished; f != nil {
		of = e.Of
		switch {
		case of == nil:
			return wrong("it does not say what its execution began with")
		case f.ExecutionID != of.ExecutionID:
			return wrong("it is about two executions")
		case f.Time.IsZero():
			return wrong("it has no time")
		case f.Status != Success && f.Status != Failed && f.Status != Terminated && f.Status != TimedOut:
			return wrong("an execution does not end as " + string(f.Status))
		}
	}
	switch {
	case !kinds[e.Kind] || e.Started != nil && e.Finished != nil:
		return wrong("it is not of one kind") // and what was pruned, Prune says
	case e.Tenant == "" || len(e.Tenant) > mostWord || store.Plain(e.Tenant) != e.Tenant:
		// It is hashed, and tells tenants apart: no other text may stand for it.
		return wrong("a tenant is 1 to 200 bytes of UTF-8 without NUL")
	case of.Tenant != e.Tenant || of.ExecutionID != e.ExecutionID:
		return wrong("it is about another execution than it says")
	case !store.IsUUID(of.ExecutionID) || !store.IsUUID(of.Session):
		return wrong("the execution or its session is no UUID")
	case e.Time.IsZero() || of.Time.IsZero():
		return wrong("it has no time")
	case len(e.Body) == 0:
		return wrong("it has no body")
	}
	// What may begin must be able to end: the table of those that ended has these checks.
	switch of.PrincipalType {
	case skill.Operator, skill.Human, skill.Agent, skill.Anonymous:
		return nil
	}
	return wrong("unknown type of principal")
}
