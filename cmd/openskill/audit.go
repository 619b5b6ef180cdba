package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List, show, verify and export the records of runs and changes",
		Long: `Read the records of runs (caller, skill, time, outcome) and of changes of keys, skills,
approvals and settings, in the database of the settings. Hosts may be running.

Each record has a hash of itself and of the previous one, so verify finds records that
were changed, removed, moved or added. Anyone who can write the whole database can
rewrite a chain: store the output of head elsewhere, and compare with verify --against.`,
		Example: `  openskill audit list --skill echo --since 24h
  openskill audit verify`,
	}
	group(cmd)
	cmd.AddCommand(a.auditListCommand(), a.auditChangesCommand(), a.auditShowCommand(), a.auditVerifyCommand(), a.auditHeadCommand(), a.auditExportCommand())
	return cmd
}

// withAudit opens the records of the settings' database for as long as do takes.
func (a *cli) withAudit(ctx context.Context, flags *settingsFlags, do func(records.Store) error) error {
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	return a.withDatabase(ctx, flags, true, auditFailed, func(db *store.DB) error {
		if err := app.Recover(ctx, s, db, a.logger(level(s, slog.LevelWarn))); err != nil {
			return auditFailed(err)
		}
		return do(records.NewStore(db))
	})
}

// withDatabase opens the settings' database for as long as do takes. existing says that it
// must be there: a command that only reads makes none, which would look like one that holds
// nothing. failed says whose fault it is where it cannot be opened.
func (a *cli) withDatabase(ctx context.Context, flags *settingsFlags, existing bool, failed func(error) error, do func(*store.DB) error) error {
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	if err := ownState(s); err != nil {
		return err
	}
	db, err := store.Open(ctx, store.Options{URL: s.DatabaseURL, StateDir: s.StateDir, Existing: existing, Log: a.logger(level(s, slog.LevelWarn))})
	if err != nil {
		return failed(err)
	}
	if err := do(db); err != nil {
		_ = db.Close()
		return err
	}
	if err := db.Close(); err != nil {
		return hostFailed(err)
	}
	return nil
}

// auditFailed says whose fault an error is.
func auditFailed(err error) error {
	var e *skill.Error
	switch {
	case !errors.As(err, &e):
		return hostFailed(err)
	case e.Code == skill.InvalidArgument:
		return usage("%s", e.Message)
	case e.Code == skill.NotFound:
		return failed(e.Code, "%s", e.Message)
	case e.Err != nil:
		return hostFailed(fmt.Errorf("%s: %w", e.Message, e.Err))
	}
	return hostFailed(errors.New(e.Message))
}

// instant is a flag's time: a date, a time, or how long ago.
type instant struct{ time.Time }

// String implements pflag.Value.
func (m *instant) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

// Set implements pflag.Value.
func (m *instant) Set(s string) error {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			m.Time = t.UTC()
			return nil
		}
	}
	days, isDays := strings.CutSuffix(s, "d")
	if isDays {
		s = days + "h"
	}
	ago, err := time.ParseDuration(s)
	if err != nil || ago < 0 || ago > 100*365*24*time.Hour {
		return errors.New("invalid time: use 2026-11-22, 2026-11-22T10:30:00Z, or an age: 90m, 24h, 7d")
	}
	if isDays {
		ago *= 24
	}
	m.Time = time.Now().UTC().Add(-ago)
	return nil
}

// Type implements pflag.Value.
func (m *instant) Type() string { return "TIME" }

// statuses are those that a filter may name.
var statuses = []records.Status{records.Running, records.Success, records.Failed, records.Terminated, records.TimedOut}

func (a *cli) auditListCommand() *cobra.Command {
	var asJSON bool
	var q records.Query
	var status string
	var since, until instant
	limit := cliflag.Count{Value: 50, Low: 1, High: 1000, Name: "N"}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List executions, newest first",
		Long: `List executions, newest first, including running ones. A page ends with the cursor of
the next one, if there is one.`,
		Example: `  openskill audit list --tenant acme --status failed --since 7d
  openskill audit list --json --limit 1000`,
		Args: takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, `print {"data": […], "next": cursor or null}`)
	f.Var(cliflag.Text(&q.Tenant, "TENANT"), "tenant", "only those of this tenant")
	f.Var(cliflag.Text(&q.Principal, "ID"), "principal", "only calls of this principal: key:ID of a key, the sub of a JWT, or local")
	f.Var(cliflag.Text(&q.Skill, "SKILL"), "skill", "only those of this skill")
	f.Var(cliflag.Text(&status, "STATUS"), "status", "only executions with this status: running, success, failed, terminated or timeout")
	f.Var(cliflag.Text(&q.Code, "CODE"), "code", "only executions with this error code, such as TIMEOUT")
	f.Var(cliflag.Text(&q.Session, "ID"), "session", "only those of this session")
	f.Var(cliflag.Text(&q.TraceID, "ID"), "trace", "only those with this trace id")
	f.Var(&since, "since", "start of the time range: 2026-11-22, 2026-11-22T10:30:00Z, or an age: 24h, 7d")
	f.Var(&until, "until", "end of the time range, exclusive")
	f.Var(cliflag.Text(&q.Cursor, "CURSOR"), "cursor", "cursor that the previous page ended with")
	f.Var(&limit, "limit", "number of executions per page")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, s := range statuses {
			if string(s) == status {
				q.Status = s
			}
		}
		if status != "" && q.Status == "" {
			return usage("--status %s: unknown status; use running, success, failed, terminated or timeout", quote(status))
		}
		q.Since, q.Until, q.Limit = since.Time, until.Time, int(limit.Value) // at most 1000
		return a.withAudit(cmd.Context(), flags, func(s records.Store) error {
			page, next, err := s.Executions(cmd.Context(), q)
			if err != nil {
				return auditFailed(err)
			}
			if asJSON {
				out := struct {
					Data []shownExecution `json:"data"`
					Next *string          `json:"next"`
				}{Data: []shownExecution{}}
				for _, e := range page {
					out.Data = append(out.Data, showExecution(e))
				}
				if next != "" {
					out.Next = &next
				}
				return a.printJSON(out)
			}
			if err := a.print("%s\n", executionTable(page)); err != nil || next == "" {
				return err
			}
			return a.print("\nmore: --cursor %s\n", next)
		})
	}
	return cmd
}

// shownExecution is an execution as --json prints it.
type shownExecution struct {
	Status records.Status `json:"status"`
	records.Started
	Finished *records.Finished `json:"finished"` // null while it runs
	Damaged  string            `json:"damaged,omitempty"`
}

func showExecution(e *records.Execution) shownExecution {
	return shownExecution{e.Status(), e.Started, e.Finished, e.Damaged}
}

func executionTable(page []*records.Execution) string {
	t := newTable("STARTED", "EXECUTION", "STATUS", "CODE", "SKILL", "VERSION", "TENANT", "PRINCIPAL", "MS", "FUEL")
	for _, e := range page {
		row := []any{
			e.Started.Time.UTC().Format(time.RFC3339), skill.CleanText(e.Started.ExecutionID, 40), skill.CleanText(string(e.Status()), 40), "", shownSkill(e),
			skill.CleanText(e.Version, 40), skill.CleanText(e.Tenant, 40), skill.CleanText(e.Principal, 40), "", "",
		}
		if f := e.Finished; f != nil {
			row[3], row[8], row[9] = skill.CleanText(string(f.Code), 40), f.DurationMS, f.Fuel
		}
		t.row(row...)
	}
	return t.String()
}

// shownSkill names a skill, or a script of one.
func shownSkill(e *records.Execution) string {
	if e.Script == "" {
		return skill.CleanText(e.Skill, 64)
	}
	return skill.CleanText(e.Skill+"/"+e.Script, 100)
}

func (a *cli) auditShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show EXECUTION…",
		Short:   "Show the records of executions",
		Long:    "Show the records of executions, by their ids.",
		Example: "  openskill audit show 019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f --json",
		Args:    takes(1, many),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per execution")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withAudit(cmd.Context(), flags, func(s records.Store) error {
			for i, id := range args {
				e, err := s.Execution(cmd.Context(), "", id)
				switch {
				case errors.Is(err, records.ErrNotFound):
					return failed(skill.NotFound, "execution %s not found", quote(id))
				case err != nil:
					return auditFailed(err)
				case asJSON:
					err = a.printJSON(showExecution(e))
				default:
					if i > 0 {
						err = a.print("\n")
					}
					err = errors.Join(err, a.print("%s", executionLines(e)))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// executionLines is an execution for people: what it has, a line each.
func executionLines(e *records.Execution) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s  %s\n", name, skill.CleanText(value, 2000))
		}
	}
	clock := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
	line("execution", e.Started.ExecutionID)
	line("status", string(e.Status()))
	line("damaged", e.Damaged)
	if f := e.Finished; f != nil {
		line("code", string(f.Code))
		line("message", f.Message)
	}
	line("skill", shownSkill(e))
	line("version", e.Version)
	line("digest", e.Digest)
	line("owner", e.Owner)
	line("tenant", e.Tenant)
	line("principal", e.Principal+" ("+string(e.PrincipalType)+")")
	line("key", e.Key)
	line("trace", e.TraceID)
	if e.Session != e.Started.ExecutionID {
		line("session", fmt.Sprintf("%s, iteration %d", e.Session, e.Iteration))
	}
	line("replay of", e.ReplayOf)
	line("host", e.Instance)
	line("started", clock(e.Started.Time))
	line("input", payloadLine(&e.Input))
	f := e.Finished
	if f == nil {
		return b.String()
	}
	line("finished", clock(f.Time))
	line("output", payloadLine(&f.Output))
	for _, x := range f.Artifacts {
		line("artifact", fmt.Sprintf("%s, %d bytes %s", x.Name, x.Size, x.SHA256))
	}
	if u := f.Unlisted; u != nil {
		line("artifacts", fmt.Sprintf("%d more of %d bytes, without room in the record; sha256 of the whole list %s", u.Count, u.Bytes, u.SHA256))
	}
	line("runner", string(f.Runner))
	if p := f.Processes; p != nil {
		line("processes", fmt.Sprint(p.Started))
		b.WriteString(records.Tree(p))
	}
	line("used", fmt.Sprintf("%d ms, fuel %d, memory %d bytes, %d tokens", f.DurationMS, f.Fuel, f.MemoryPeak, f.Tokens))
	if f.Reported > 0 {
		line("reported", fmt.Sprintf("%d tokens, by the skill's own word", f.Reported))
	}
	return b.String()
}

func payloadLine(p *records.Payload) string {
	s := fmt.Sprintf("%d bytes", p.Bytes)
	if p.SHA256 != "" {
		s += ", sha256 " + p.SHA256
	}
	if p.Truncated {
		s += ", not kept whole"
	}
	if p.JSON != nil {
		s += ": " + string(p.JSON)
	}
	return s
}
