package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/records"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) auditChangesCommand() *cobra.Command {
	var asJSON bool
	var q records.ChangeQuery
	var since, until instant
	limit := cliflag.Count{Value: 50, Low: 1, High: 1000, Name: "N"}
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "List changes of keys, skills, approvals and settings, newest first",
		Long: `List changes of keys, skills, approvals and settings, newest first, with their authors.
A change is recorded before it is made; a failed one has a second record with the error
code.`,
		Example: `  openskill audit changes --tenant acme --since 7d
  openskill audit changes --json --limit 1000`,
		Args: takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, `print {"data": […]}`)
	f.Var(cliflag.Text(&q.Tenant, "TENANT"), "tenant", "only changes of this tenant; local: the host itself")
	f.Var(&since, "since", "start of the time range: 2026-11-22, 2026-11-22T10:30:00Z, or an age: 24h, 7d")
	f.Var(&until, "until", "end of the time range, exclusive")
	f.Var(&limit, "limit", "how many")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q.Since, q.Until, q.Limit = since.Time, until.Time, int(limit.Value) // at most 1000
		return a.withAudit(cmd.Context(), flags, func(s records.Store) error {
			all, err := s.Changes(cmd.Context(), q)
			if err != nil {
				return auditFailed(err)
			}
			if asJSON {
				return a.printJSON(listOf[records.Change]{append([]records.Change{}, all...)})
			}
			t := newTable("TIME", "ACTION", "SUBJECT", "TENANT", "PRINCIPAL", "OF", "FAILED", "DETAILS")
			for i := range all {
				c := &all[i]
				var details []string
				for _, name := range slices.Sorted(maps.Keys(c.Details)) {
					if v := c.Details[name]; v != "" {
						details = append(details, name+"="+v)
					}
				}
				t.row(
					c.Time.UTC().Format(time.RFC3339), skill.CleanText(c.Action, 40), skill.CleanText(c.Subject, 80), skill.CleanText(c.Tenant, 40),
					skill.CleanText(c.Principal, 40), skill.CleanText(c.Of, 40), skill.CleanText(string(c.Failed), 40), skill.CleanText(strings.Join(details, " "), 120),
				)
			}
			return a.print("%s\n", t)
		})
	}
	return cmd
}
