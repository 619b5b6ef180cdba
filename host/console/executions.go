package console

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// execution is one as the API tells it.
type execution struct {
	ID            string           `json:"id"`
	Status        string           `json:"status"`
	Skill         string           `json:"skill"`
	Script        string           `json:"script"`
	Version       string           `json:"version"`
	Digest        string           `json:"digest"`
	Runner        string           `json:"runner"`
	Tenant        string           `json:"tenant"`
	Principal     string           `json:"principal"`
	PrincipalType string           `json:"principal_type"`
	Key           string           `json:"key"`
	TraceID       string           `json:"trace_id"`
	Session       string           `json:"session"`
	Iteration     int              `json:"iteration"`
	ReplayOf      string           `json:"replay_of"`
	StartedAt     time.Time        `json:"started_at"`
	FinishedAt    *time.Time       `json:"finished_at"`
	DurationMS    *int64           `json:"duration_ms"`
	Fuel          *uint64          `json:"fuel_used"`
	MemoryPeak    *uint64          `json:"memory_peak_bytes"`
	Tokens        *int             `json:"tokens"`
	Error         *apiError        `json:"error"`
	Limits        skill.LimitsJSON `json:"limits"`
	Input         client.Payload   `json:"input"`
	Output        *client.Payload  `json:"output"`
	Artifacts     []struct {
		Name   string `json:"name"`
		Size   int64  `json:"size"`
		SHA256 string `json:"sha256"`
		Kept   *bool  `json:"kept"`
	} `json:"artifacts"`
	Damaged  string `json:"damaged"`
	Unlisted *struct {
		Count  int    `json:"count"`
		Bytes  int64  `json:"bytes"`
		SHA256 string `json:"sha256"`
	} `json:"unlisted"`
	Processes   *skill.Processes `json:"processes"`
	Logs        string           `json:"logs"`
	Result      json.RawMessage  `json:"result"`
	ResultHead  string           `json:"result_head"` // of a long one
	ResultBytes int              `json:"result_bytes"`
}

func (e *execution) took() string {
	if e.DurationMS == nil {
		return "–"
	}
	return length(max(time.Duration(*e.DurationMS)*time.Millisecond, time.Microsecond))
}

func (e *execution) code() string {
	if e.Error == nil {
		return ""
	}
	return e.Error.Code
}

// executionsData is a page of executions.
type executionsData struct {
	List    []execution
	Next    string
	Filters []filter
	Live    bool // the page shows those that end now
	All     bool // the caller sees more than its own calls
	Host    bool // of all tenants
	Chain   *ChainState
	older   []string // the query of this page
}

// filter is one of the list's.
type filter struct {
	Name, Label, Value string
	Options            []string // nil: any text
}

// statuses are those that executions have.
var statuses = []string{"queued", "running", "success", "failed", "terminated", "timeout"}

// spans are how far back a list may look.
var spans = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

func (v *view) loadExecutions() (*executionsData, error) {
	q := v.r.URL.Query()
	d := &executionsData{
		All:  v.p.May(skill.ScopeAllExecutions) || v.p.May(skill.ScopeHost),
		Host: v.p.May(skill.ScopeHost),
	}
	add := func(name, label string, options ...string) {
		value := strings.TrimSpace(q.Get(name))
		d.Filters = append(d.Filters, filter{name, label, value, options})
		d.older = append(d.older, name, value)
	}
	add("skill", "Skill")
	add("status", "Status", statuses...)
	add("code", "Code")
	add("since", "Began within", "1h", "24h", "7d")
	if d.All {
		add("principal", "Caller")
	}
	if d.Host {
		add("tenant", "Tenant")
	}
	add("trace", "Trace")
	add("session", "Session")
	query := values("limit", "50", "cursor", q.Get("cursor"))
	d.Live = q.Get("cursor") == "" && v.o.Tail != nil
	for _, f := range d.Filters {
		if f.Value == "" {
			continue
		}
		if f.Name != "skill" {
			d.Live = false // what comes in is not filtered but by skill
		}
		if span, ok := spans[f.Value]; f.Name == "since" && ok {
			f.Value = v.o.Now().Add(-span).UTC().Format(time.RFC3339)
		}
		query.Set(f.Name, f.Value)
	}
	var page list[execution]
	if err := v.ask("GET", "/executions", query, nil, &page); err != nil {
		return nil, err
	}
	d.List, d.Next = page.Data, page.next()
	return d, nil
}

func (v *view) executions() error {
	if err := v.allowed("executions"); err != nil {
		return err
	}
	d, err := v.loadExecutions()
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, executionsPage(v.frame("executions", "Executions"), d, v.mayVerify()))
}

// executionData is one execution.
type executionData struct {
	execution
	MayEnd bool
	Replay *replayReport
}

// replayReport is what came of a replay.
type replayReport struct {
	ReplayID    string `json:"replay_id"`
	Identical   bool   `json:"identical"`
	Draws       int    `json:"draws_bytes"`
	Differences []struct {
		Field   string `json:"field"`
		Name    string `json:"name"`
		Pointer string `json:"pointer"`
		Then    string `json:"then"`
		Now     string `json:"now"`
	} `json:"differences"`
	Notes []string `json:"notes"`
}

func (v *view) loadExecution() (*executionData, error) {
	if err := v.allowed("executions"); err != nil {
		return nil, err
	}
	d := &executionData{}
	if err := v.ask("GET", pathOf("executions", v.r.PathValue("id")), values("result", "head"), nil, &d.execution); err != nil {
		return nil, err
	}
	d.MayEnd = (d.Status == "running" || d.Status == "queued") && (v.p.May(skill.ScopeHost) || d.Principal == v.p.ID && v.p.MayInvokeSome())
	return d, nil
}

func (v *view) execution() error {
	d, err := v.loadExecution()
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, executionPage(v.frame("executions", "Execution"), d))
}

func (v *view) replay() error {
	d, err := v.loadExecution()
	if err != nil {
		return err
	}
	r := &replayReport{}
	if err := v.ask("POST", "/executions/"+d.ID+":replay", nil, nil, r); err != nil {
		v.leave(false, messageOf(err))
		return v.redirect("/executions/" + d.ID)
	}
	d.Replay = r
	return v.show(http.StatusOK, executionPage(v.frame("executions", "Execution"), d))
}

func (v *view) endExecution() error {
	id := v.r.PathValue("id")
	if err := v.ask("DELETE", pathOf("executions", id), nil, nil, nil); err != nil {
		v.leave(false, messageOf(err))
	} else {
		v.leave(true, "Ending the execution.")
	}
	http.Redirect(v.w, v.r, string(link("executions", id)), http.StatusSeeOther)
	return nil
}

// artifact hands a file on to be saved, whatever it says that it is.
func (v *view) artifact() error {
	if err := v.allowed("executions"); err != nil {
		return err
	}
	name := v.r.PathValue("name")
	return v.save(name, pathOf("executions", v.r.PathValue("id"), "artifacts", name))
}

// save hands a file of the API on to be saved.
func (v *view) save(name, path string) error {
	resp, err := v.call("GET", path, nil, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return v.read(resp, nil)
	}
	defer resp.Body.Close()
	h := v.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	last := name[strings.LastIndex(name, "/")+1:]
	safe := strings.Map(func(r rune) rune {
		if hidden(r) || strings.ContainsRune(`"\/:*?<>|`, r) {
			return '_'
		}
		return r
	}, last)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": safe}))
	_, _ = io.Copy(v.w, resp.Body) // the client has left
	return nil
}

// ChainState is what a look at a tenant's chain of records found.
type ChainState struct {
	Tenant  string
	From    uint64 // number of the first record that was looked at
	Last    uint64
	Records uint64
	Faults  []string // the first ones
	Found   int      // faults in all; 0: it is whole
}

// mayVerify reports whether the caller may have its chain looked at: who reads all records
// of its tenant.
func (v *view) mayVerify() bool {
	return v.o.Chain != nil && (v.p.May(skill.ScopeAllExecutions) || v.p.May(skill.ScopeHost))
}

// verifyChain looks at the chain of the caller's own tenant, or of another one for the
// operator.
func (v *view) verifyChain() error {
	if !v.mayVerify() {
		return &apiError{Status: http.StatusForbidden, Code: string(skill.Forbidden), Message: "This requires the scope " + skill.ScopeAllExecutions + " or " + skill.ScopeHost + "."}
	}
	tenant := v.p.Tenant
	if given := v.r.PostForm.Get("tenant"); given != "" && v.p.May(skill.ScopeHost) {
		tenant = given
	}
	if tenant == "" {
		return v.fail(http.StatusBadRequest, "You have no tenant and therefore no records.")
	}
	state, err := v.o.Chain(v.r.Context(), tenant)
	if err != nil {
		return err
	}
	d, err := v.loadExecutions()
	if err != nil {
		return err
	}
	d.Chain = state
	return v.show(http.StatusOK, executionsPage(v.frame("executions", "Executions"), d, true))
}

// share is how much of a limit was used, in percent; -1: there is no limit.
func share(used *uint64, limit uint64) int {
	if used == nil || limit == 0 {
		return -1
	}
	return int(min(*used*100/limit, 100)) // at most 100
}

// badge is the look of a status.
func badge(status string) string {
	switch status {
	case "success", "enabled", "approved", "allowed", "active", "passed":
		return "badge good"
	case "failed", "denied", "quarantined", "revoked", "changed", "timeout", "terminated":
		return "badge bad"
	case "running", "pending":
		return "badge busy"
	}
	return "badge"
}

func (d *executionsData) olderURL() string {
	return string(with(link("executions"), append(slices.Clone(d.older), "cursor", d.Next)...))
}
