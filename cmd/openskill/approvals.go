package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/dispatch/approval"
	"openskill/host/store"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) approvalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List and decide the approvals that scripts requested",
		Long: `List and decide approval requests of scripts of Agent Skills (OPENSKILL_SCRIPT_APPROVAL)
in the host's database. A running host sees decisions at once.`,
		Example: `  openskill approvals list --only pending
  openskill approvals approve 019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f`,
	}
	group(cmd)
	cmd.AddCommand(a.approvalsListCommand(), a.approvalsDecideCommand(true), a.approvalsDecideCommand(false))
	return cmd
}

// withApprovals calls do with the approvals in the database of the settings, which must be
// there unless an older release left approvals in the state folder.
func (a *cli) withApprovals(ctx context.Context, flags *settingsFlags, do func(*approval.Store) error) error {
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	_, err = os.Stat(approval.Dir(s.StateDir))
	return a.withDatabase(ctx, flags, err != nil, auditFailed, func(db *store.DB) error {
		approvals, err := approval.Open(ctx, approval.Options{
			DB: db, Dir: approval.Dir(s.StateDir), Record: app.RecordApprovals(db), Log: a.logger(level(s, slog.LevelWarn)),
		})
		if err != nil {
			return hostFailed(cause(err))
		}
		return do(approvals)
	})
}

// cause is what the operator must mend: an error's own cause where it has one.
func cause(err error) error {
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

func (a *cli) approvalsListCommand() *cobra.Command {
	var asJSON bool
	var state string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List approval requests, newest first",
		Long:    "List approval requests and their decisions, newest first.",
		Example: "  openskill approvals list --only pending --json",
		Args:    takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"data": […]}`)
	cmd.Flags().Var(cliflag.Text(&state, "STATE"), "only", "filter by state: pending, approved, denied, expired or used")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var only approval.State
		if state != "" {
			var err error
			if only, err = approval.ParseState(state); err != nil {
				return usage("--only %s: unknown state; use pending, approved, denied, expired or used", quote(state))
			}
		}
		return a.withApprovals(cmd.Context(), flags, func(approvals *approval.Store) error {
			all, err := everyPage(func(cursor string) ([]approval.Approval, string, error) {
				return approvals.ListState(cmd.Context(), skill.Local(), only, cursor, approval.MaxPage)
			})
			if err != nil {
				return hostFailed(cause(err))
			}
			if asJSON {
				return a.printJSON(listOf[approval.Approval]{all})
			}
			return a.print("%s\n", approvalTable(all))
		})
	}
	return cmd
}

func approvalTable(all []approval.Approval) string {
	t := newTable("ID", "STATE", "FOR", "SKILL", "SCRIPT", "ARGUMENTS", "TENANT", "CALLER", "UNTIL", "DIGEST")
	for i := range all {
		p := &all[i]
		until := ""
		if !p.ExpiresAt.IsZero() {
			until = p.ExpiresAt.UTC().Format(time.RFC3339)
		}
		digest := short(p.Digest)
		if p.PreviousDigest != "" {
			digest = short(p.PreviousDigest) + " → " + digest
		}
		args := skill.CleanText(strings.Join(p.Arguments, " "), 60)
		t.row(
			p.ID, p.State, p.Policy, p.Skill, skill.CleanText(p.Script, 60), args,
			skill.CleanText(p.Tenant, 40), skill.CleanText(p.Caller, 40), until, digest,
		)
	}
	return t.String()
}

// short is the beginning of a digest, by which a person tells two apart.
func short(digest string) string {
	_, hex, ok := strings.Cut(digest, ":")
	if !ok {
		hex = digest
	}
	return skill.CleanText(hex[:min(len(hex), 12)], 12)
}

func (a *cli) approvalsDecideCommand(approve bool) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "approve ID…",
		Short: "Approve a request",
		Long: `Approve a request: for all scripts of this version of the skill, or for one call, as the
record says.`,
		Example: "  openskill approvals approve 019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f",
		Args:    takes(1, many),
	}
	if !approve {
		cmd.Use, cmd.Short = "deny ID…", "Deny a request, or withdraw an approval"
		cmd.Long = "Deny a request, or withdraw an approval. Running scripts continue."
		cmd.Example = "  openskill approvals deny 019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f"
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per approval")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withApprovals(cmd.Context(), flags, func(approvals *approval.Store) error {
			for _, id := range args {
				if err := a.decide(cmd.Context(), approvals, id, approve, asJSON); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

func (a *cli) decide(ctx context.Context, approvals *approval.Store, id string, approve, asJSON bool) error {
	p, err := approvals.Decide(ctx, skill.Local(), id, approve)
	switch e, ok := errors.AsType[*skill.Error](err); {
	case ok && (e.Code == skill.NotFound || e.Code == skill.Conflict):
		return failed(e.Code, "%s: %s", skill.CleanText(id, 80), e.Message)
	case err != nil:
		return hostFailed(cause(err))
	case asJSON:
		return a.printJSON(p)
	}
	what := "this version of its skill"
	if p.Policy == approval.PerCall {
		what = "this call"
	}
	return a.print("%s: %s of %s, %s, is %s\n", p.ID, skill.CleanText(p.Script, 200), skill.CleanText(p.Skill, 80), what, p.State)
}
