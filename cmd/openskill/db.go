package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/store"
	"openskill/internal/cliflag"
)

func (a *cli) dbCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "db",
		Short: "Maintain the database",
		Long: `Maintain the database of records, keys and definitions: a SQLite file in the state
folder, or the one of OPENSKILL_DATABASE_URL.`,
		Example: "  openskill db migrate --status",
	}
	group(cmd)
	cmd.AddCommand(a.dbMigrateCommand())
	return cmd
}

func (a *cli) dbMigrateCommand() *cobra.Command {
	var status, down, asJSON bool
	to := cliflag.Count{Low: 0, High: 1 << 31, Name: "VERSION"}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database schema to a version",
		Long: `Migrate the database schema to this program's version, or to --to, and list the steps. A
host does the same when it starts. Use this command to migrate in advance, with other
database rights, or to return to an older release.

A step down drops the tables that its step up created, with their contents; other tables
stay. Stop the hosts first, and make a backup. The database of a newer release is left
unchanged, with exit code 1.`,
		Example: `  openskill db migrate
  openskill db migrate --status --json
  openskill db migrate --to 1
  OPENSKILL_DATABASE_URL=postgres://… openskill db migrate --down`,
		Args: takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().Var(&to, "to", "target version, higher or lower; 0 is a database without openSkill tables")
	cmd.Flags().BoolVar(&down, "down", false, "one step down")
	cmd.Flags().BoolVar(&status, "status", false, "list the steps and whether they were applied")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"version", "latest", "migrations"}`)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if named := cmd.Flags().Changed("to"); named && (down || status) || down && status {
			return usage("use only one of --to, --down and --status")
		}
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		if err := ownState(s); err != nil {
			return err
		}
		m, err := store.Migrate(cmd.Context(), store.Options{URL: s.DatabaseURL, StateDir: s.StateDir, Existing: status, Log: a.logger(level(s, slog.LevelWarn))})
		if err != nil {
			return keysFailed(err)
		}
		defer m.Close()
		var named *int64
		if cmd.Flags().Changed("to") {
			version := int64(to.Value) // at most 2^31 by its range
			named = &version
		}
		steps, err := migrate(cmd.Context(), m, status, down, named)
		if err != nil {
			return keysFailed(err)
		}
		return a.printSteps(m, steps, asJSON)
	}
	return cmd
}

// migrate does what the flags say, and gives the steps as they are then.
func migrate(ctx context.Context, m *store.Migrator, status, down bool, to *int64) ([]store.Migration, error) {
	switch {
	case to != nil:
		return m.To(ctx, *to)
	case !status && !down:
		return m.To(ctx, m.Latest())
	}
	steps, err := m.Status(ctx)
	if err != nil || status {
		return steps, err
	}
	return m.To(ctx, max(schemaVersion(steps)-1, 0))
}

// schemaVersion is the version that the steps make.
func schemaVersion(steps []store.Migration) (v int64) {
	for _, s := range steps {
		if s.Applied != nil {
			v = s.Version
		}
	}
	return v
}

func (a *cli) printSteps(m *store.Migrator, steps []store.Migration, asJSON bool) error {
	if asJSON {
		return a.printJSON(struct {
			Version    int64             `json:"version"`
			Latest     int64             `json:"latest"`
			Migrations []store.Migration `json:"migrations"`
		}{schemaVersion(steps), m.Latest(), steps})
	}
	t := newTable("VERSION", "STEP", "TAKEN")
	for _, s := range steps {
		taken := "no"
		if s.Applied != nil {
			taken = s.Applied.Format(time.RFC3339)
		}
		t.row(s.Version, s.Name, taken)
	}
	return a.print("%s\nversion %d of %d\n", t, schemaVersion(steps), m.Latest())
}
