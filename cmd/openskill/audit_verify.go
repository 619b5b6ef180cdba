package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/records"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) auditVerifyCommand() *cobra.Command {
	var asJSON, chainOnly bool
	var tenant, against string
	from := cliflag.Count{Low: 1, High: 1 << 62, Name: "N"}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify that no record was changed, removed, moved or added",
		Long: `Verify the chain of each tenant, from its oldest record to its last, and print a line
for each intact one, or a line for each of the first 100 faults. Executions are compared
with their records; each needs one. Hosts may be running. The exit code is 1 for any
fault.

A chain cannot prove that it was not rewritten as a whole. --against compares with heads
that were stored elsewhere. A head whose record was removed is a fault: compare with a
newer one. The exit code is also 1 if nothing is verified: the tenant has no records, or
none from --from.`,
		Example: `  openskill audit verify
  openskill audit verify --tenant acme --against heads.jsonl`,
		Args: takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON object per tenant")
	f.BoolVar(&chainOnly, "chain-only", false, "verify the chains only, without comparing the executions")
	f.Var(cliflag.Text(&tenant, "TENANT"), "tenant", "only the chain of this tenant")
	f.Var(&from, "from", "number of the first record to verify; the previous one is trusted")
	f.Var(cliflag.Text(&against, "FILE"), "against", "file with earlier output of openskill audit head --json; - is standard input")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o := records.VerifyOptions{Tenant: tenant, From: from.Value, Rows: !chainOnly}
		if against != "" {
			var err error
			if o.Against, err = a.readHeads(against, tenant); err != nil {
				return err
			}
		}
		set, err := a.load(flags)
		if err != nil {
			return err
		}
		o.Retention = set.AuditRetention()
		var printed error
		o.Each = func(c *records.Chain) {
			if printed == nil {
				printed = a.printChain(c, asJSON)
			}
		}
		return a.withAudit(cmd.Context(), flags, func(s records.Store) error {
			r, err := records.Verify(cmd.Context(), s, o)
			if err != nil {
				return auditFailed(err)
			}
			if against != "" && printed == nil {
				printed = a.printCompared(o.Against, tenant, against, asJSON)
			}
			switch {
			case printed != nil:
				return printed
			case !r.Whole():
				return exit(exitFailed)
			case len(r.Chains) == 0 && !asJSON:
				return a.print("no records\n")
			case tenant != "" && r.Chains[0].Last == 0:
				return failed(skill.NotFound, "no records of the tenant %s", quote(tenant))
			case len(r.Chains) > 0 && !slices.ContainsFunc(r.Chains, func(c records.Chain) bool { return !c.Beyond }):
				return failed(skill.NotFound, "no record %d or higher; give --from an existing record number", from.Value)
			}
			return nil
		})
	}
	return cmd
}

// printCompared says how many heads were compared.
func (a *cli) printCompared(heads []records.Head, tenant, file string, asJSON bool) error {
	n := 0
	for _, h := range heads {
		if h.Last > 0 && (tenant == "" || h.Tenant == tenant) {
			n++
		}
	}
	if asJSON {
		a.say("compared with %d heads of %s", n, quote(file))
		return nil
	}
	return a.print("compared with %d heads of %s\n", n, quote(file))
}

// printChain says what was found of a chain.
func (a *cli) printChain(c *records.Chain, asJSON bool) error {
	name := quote(c.Tenant)
	switch fault := c.Fault; {
	case asJSON:
		return a.printJSON(struct {
			Whole bool `json:"whole"`
			*records.Chain
		}{c.Fault == nil, c})
	case fault == nil && c.LostSigns > 0:
		return a.print("%s: whole, %d records, %d to %d, the last with %s; %d executions of older versions show 0 for -0\n",
			name, c.Records, c.First, c.Last, c.Hash, c.LostSigns)
	case fault == nil && c.Last == 0:
		return a.print("%s: no records\n", name)
	case fault == nil && c.Beyond:
		return a.print("%s: ends with record %d, before the one to begin at; only the last one, with %s, was read\n", name, c.Last, c.Hash)
	case fault == nil:
		return a.print("%s: whole, %d records, %d to %d, the last with %s\n", name, c.Records, c.First, c.Last, c.Hash)
	}
	for i := range c.Faults {
		if err := a.print("%s: WRONG at %s\n", name, &c.Faults[i]); err != nil {
			return err
		}
	}
	if c.Found > len(c.Faults) {
		return a.print("%s: WRONG in %d places; the first %d are listed\n", name, c.Found, len(c.Faults))
	}
	return nil
}

// readHeads reads heads that were kept. There must be one, since nothing would be compared:
// of the tenant, if one is named.
func (a *cli) readHeads(file, tenant string) ([]records.Head, error) {
	in := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, usage("--against: %v", err)
		}
		defer f.Close()
		in = f
	}
	heads, err := records.ReadHeads(in)
	if err != nil {
		return nil, usage("--against: %v; use the output of openskill audit head --json", err)
	}
	if !slices.ContainsFunc(heads, func(h records.Head) bool { return h.Last > 0 && (tenant == "" || h.Tenant == tenant) }) {
		return nil, usage("--against: %s has no head to compare with; give the output of openskill audit head --json", quote(file))
	}
	return heads, nil
}

func (a *cli) auditHeadCommand() *cobra.Command {
	var asJSON bool
	var tenant string
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Print the heads of the chains, to store elsewhere",
		Long: `Print the number and hash of the last record of each tenant. Store them where writers of
the database cannot change them; verify --against then shows whether the records up to
there are unchanged.`,
		Example: "  openskill audit head --json > heads.jsonl",
		Args:    takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per tenant")
	cmd.Flags().Var(cliflag.Text(&tenant, "TENANT"), "tenant", "only the chain of this tenant")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withAudit(cmd.Context(), flags, func(s records.Store) error {
			heads, err := chosenHeads(cmd.Context(), s, tenant)
			if err != nil {
				return err
			}
			if asJSON {
				if err := datedHeads(cmd.Context(), s, heads); err != nil {
					return auditFailed(err)
				}
				if err := records.WriteHeads(a.stdout, heads); err != nil {
					return hostFailed(err)
				}
				return nil
			}
			t := newTable("TENANT", "FIRST", "LAST", "HASH OF THE LAST")
			for _, h := range heads {
				t.row(skill.CleanText(h.Tenant, 80), h.First, h.Last, h.LastHash)
			}
			return a.print("%s\n", t.String())
		})
	}
	return cmd
}

// chosenHeads are the heads of all chains, or of one that must be there.
func chosenHeads(ctx context.Context, s records.Store, tenant string) ([]records.Head, error) {
	heads, err := s.Tenants(ctx)
	if err != nil {
		return nil, auditFailed(err)
	}
	if tenant == "" {
		return heads, nil
	}
	for _, h := range heads {
		if h.Tenant == tenant {
			return []records.Head{h}, nil
		}
	}
	return nil, failed(skill.NotFound, "no records of the tenant %s", quote(tenant))
}

// datedHeads sets the times of heads. One whose record is gone meanwhile has none.
func datedHeads(ctx context.Context, s records.Store, heads []records.Head) error {
	for i := range heads {
		h := &heads[i]
		last, err := s.Records(ctx, h.Tenant, h.Last, 1)
		if err != nil {
			return err
		}
		if len(last) > 0 && last[0].Seq == h.Last {
			h.Time = last[0].Time
		}
	}
	return nil
}

func (a *cli) auditExportCommand() *cobra.Command {
	var tenant, out string
	var since, until instant
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Export records as JSON lines",
		Long: `Export records as JSON lines, tenant by tenant, in the order of their chains, with their
hashes. body is the hashed text.`,
		Example: `  openskill audit export --since 2026-11-01 --until 2026-12-01 --out november.jsonl
  openskill audit export --tenant acme | gzip > acme.jsonl.gz`,
		Args: takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	f := cmd.Flags()
	f.Var(cliflag.Text(&tenant, "TENANT"), "tenant", "only the records of this tenant")
	f.Var(&since, "since", "start of the time range: 2026-11-22, 2026-11-22T10:30:00Z, or an age: 24h, 7d")
	f.Var(&until, "until", "end of the time range, exclusive")
	f.Var(cliflag.Text(&out, "FILE"), "out", "output file, which must not exist; default: standard output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withAudit(cmd.Context(), flags, func(s records.Store) error {
			heads, err := chosenHeads(cmd.Context(), s, tenant)
			if err != nil {
				return err
			}
			n := 0
			write := func(w io.Writer) error {
				for _, h := range heads {
					m, err := exportChain(cmd.Context(), w, s, h, since.Time, until.Time)
					n += m
					if err != nil {
						return err
					}
				}
				return nil
			}
			if out == "" {
				err = write(a.stdout)
			} else if err = intoNewFile(out, write); errors.Is(err, os.ErrExist) {
				return usage("--out %s already exists; choose another file", quote(out))
			}
			if err != nil {
				return auditFailed(err)
			}
			a.say("%d records of %d tenants", n, len(heads))
			return nil
		})
	}
	return cmd
}

// exportChain writes the records of one tenant up to its head.
func exportChain(ctx context.Context, w io.Writer, s records.Store, h records.Head, since, until time.Time) (n int, err error) {
	b := bufio.NewWriterSize(w, 1<<16)
	for r, err := range records.Records(ctx, s, h.Tenant, h.First) {
		switch {
		case err != nil:
			return n, err
		case r.Seq > h.Last: // it came while this was written
			return n, b.Flush()
		case !since.IsZero() && r.Time.Before(since), !until.IsZero() && !r.Time.Before(until):
			continue
		}
		if y := r.Time.Year(); !json.Valid(r.Body) || y < 1 || y > 9999 {
			return n, fmt.Errorf("record %d of the tenant %s is damaged; the export ends before it; run openskill audit verify", r.Seq, quote(h.Tenant))
		}
		if err := writeJSON(b, r); err != nil {
			return n, err
		}
		n++
	}
	return n, b.Flush()
}

// intoNewFile writes a file that is there whole or not at all, and that nobody else may
// read.
func intoNewFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
