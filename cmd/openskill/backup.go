package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/store"
	"openskill/internal/backup"
	"openskill/sdk/skill"
)

func (a *cli) backupCommand() *cobra.Command {
	var asJSON, force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up a host to one file",
		Long: `Write the database, uploaded skills and approvals to FILE, a tar.gz, or to standard
output for "-". Hosts may keep running: the copy is a consistent snapshot. Runtimes and
compiled modules are left out, because they can be recreated.

Protect it like the state folder: it contains inputs and results of callers.

A PostgreSQL database, with the uploads in it, is not copied: use pg_dump. FILE then has
the rest.`,
		Example: "  openskill backup openskill-monday.tar.gz\n  openskill backup - | ssh vault 'cat > openskill.tar.gz'",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE if it exists")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"made_at", "database", "schema", "files", "bytes", …} (to standard error for "-")`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		if s.StateDir, err = filepath.Abs(s.StateDir); err != nil {
			return hostFailed(err)
		}
		write := func(w io.Writer) (*backup.Index, error) {
			return app.Backup(cmd.Context(), s, w, a.logger(level(s, slog.LevelWarn)))
		}
		if args[0] == "-" {
			x, err := write(a.stdout)
			if err != nil {
				return backupFailed(err)
			}
			return a.tellBackup(a.stderr, x, "openskill: ", asJSON)
		}
		if _, err := os.Lstat(args[0]); err == nil && !force {
			return failed(skill.Conflict, "%s exists; use --force to replace it", quote(args[0]))
		}
		x, err := intoFile(args[0], write)
		if err != nil {
			return backupFailed(err)
		}
		return a.tellBackup(a.stdout, x, skill.CleanText(args[0], 200)+"  ", asJSON)
	}
	return cmd
}

// intoFile writes a file whole, for its owner alone, or leaves what was there.
func intoFile(name string, write func(io.Writer) (*backup.Index, error)) (*backup.Index, error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".backup-") // of mode 0600
	if err != nil {
		return nil, failed(skill.NotFound, "cannot write %s: %v", quote(name), plain(err))
	}
	defer os.Remove(f.Name())
	x, err := write(f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return x, os.Rename(f.Name(), name)
}

func (a *cli) restoreCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a state folder from a backup",
		Long: `Create the state folder of the settings from a file of openskill backup; "-" is standard
input. The folder must be missing or empty: existing state is never replaced. It appears
only after every file matches the archive's index and the database is intact. The next
host that opens an older database migrates it.`,
		Example: "  openskill restore openskill-monday.tar.gz --state /var/lib/openskill",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"made_at", "database", "schema", "files", "bytes", …}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		dir, err := filepath.Abs(s.StateDir)
		if err != nil {
			return hostFailed(err)
		}
		from := a.stdin
		if args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return failed(skill.NotFound, "cannot read %s: %v", quote(args[0]), plain(err))
			}
			defer f.Close()
			from = f
		}
		x, err := app.Restore(cmd.Context(), dir, from)
		if err != nil {
			return backupFailed(err)
		}
		return a.tellBackup(a.stdout, x, skill.CleanText(s.StateDir, 200)+"  ", asJSON)
	}
	return cmd
}

func backupFailed(err error) error {
	var told *exitError
	switch e, ok := errors.AsType[*skill.Error](err); {
	case errors.As(err, &told):
		return err
	case errors.Is(err, context.Canceled):
		return failed(skill.Cancelled, "interrupted; nothing was written")
	case ok && (e.Code == skill.InvalidArgument || e.Code == skill.NotFound || e.Code == skill.Conflict):
		return failed(e.Code, "%s", e.Message)
	}
	return hostFailed(err)
}

// tellBackup says what is in an archive, as JSON or as a line that begins with what.
func (a *cli) tellBackup(w io.Writer, x *backup.Index, what string, asJSON bool) error {
	var err error
	if asJSON {
		err = writeJSON(w, struct {
			*backup.Index
			Files int   `json:"files"`
			Bytes int64 `json:"bytes"`
		}{x, len(x.Files), x.Bytes()})
	} else {
		if x.Database == string(store.Postgres) {
			a.say("openskill: the PostgreSQL database is not included: back it up with pg_dump")
		}
		_, err = fmt.Fprintf(w, "%s%s\n", what, summaryOf(x))
	}
	if err != nil {
		return hostFailed(err)
	}
	return nil
}

func summaryOf(x *backup.Index) string {
	return fmt.Sprintf("%d files, %d bytes, made %s by openSkill %s", len(x.Files), x.Bytes(), x.Made.Format(time.RFC3339), skill.CleanText(x.Program, 40))
}
