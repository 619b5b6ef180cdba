package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/catalogue"
	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// withDefinitions opens the operator's skills in the settings' database for as long as do
// takes. What the folders of the settings have, and the database not yet, is seeded.
func (a *cli) withDefinitions(ctx context.Context, flags *settingsFlags, do func(*catalogue.Definitions) error) error {
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	own, err := app.Catalogue(s, app.Roots(s, nil))
	if err != nil {
		return hostFailed(err)
	}
	log := a.logger(level(s, slog.LevelError)) // what is wrong with folders is for skills list to tell
	db, err := app.OpenStore(ctx, s, log)
	if err != nil {
		return changeFailed(err)
	}
	all, err := app.Definitions(ctx, s, db, catalogue.DefinitionOptions{Own: own, Log: log})
	if err == nil {
		err = do(all)
	}
	if err = changeFailed(err); err != nil {
		_ = db.Close()
		return err
	}
	if err := db.Close(); err != nil {
		return hostFailed(err)
	}
	return nil
}

// changeFailed says whose fault an error is.
func changeFailed(err error) error {
	var done *exitError
	var e *skill.Error
	switch {
	case err == nil || errors.As(err, &done):
		return err
	case !errors.As(err, &e):
		return hostFailed(err)
	}
	switch e.Code { //nolint:exhaustive // the others are the host's
	case skill.InvalidArgument:
		return usage("%s", e.Message)
	case skill.NotFound, skill.Conflict, skill.InvalidManifest, skill.PayloadTooLarge:
		return failed(e.Code, "%s", e.Message)
	}
	return hostFailed(errors.New(e.Message + ": " + cause(e).Error()))
}

// hasDatabase reports whether there is a database to look at.
func hasDatabase(s *config.Settings) bool {
	_, err := os.Stat(filepath.Join(s.StateDir, store.File))
	return err == nil || s.DatabaseURL != ""
}

// asChanged is what was read of folders with what the database has of it. Where there is
// no database yet, nothing was changed, and none is made to look.
func (a *cli) asChanged(ctx context.Context, s *config.Settings, own *manifest.Registry) (*manifest.Registry, error) {
	if !hasDatabase(s) {
		return own, nil
	}
	log := a.logger(level(s, slog.LevelError))
	db, err := app.OpenStore(ctx, s, log)
	if err != nil {
		return nil, changeFailed(err)
	}
	all, err := app.Definitions(ctx, s, db, catalogue.DefinitionOptions{Own: own, Look: true, Log: log})
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, hostFailed(err)
	}
	return all.Now(), nil
}

func (a *cli) skillsDecideCommand(enable bool) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "enable SKILL…",
		Short: "Enable skills of the operator",
		Long: `Enable skills, whatever their files say, and restore deleted ones. Every host on the
database applies it within two seconds. Uploaded skills are enabled over HTTP.`,
		Example: "  openskill skills enable calculator",
		Args:    takes(1, many),
	}
	act := (*catalogue.Definitions).Enable
	if !enable {
		cmd.Use, cmd.Short = "disable SKILL…", "Disable skills of the operator"
		cmd.Long = `Disable skills, whatever their files say. Every host on the database
applies it within two seconds; running calls continue. Uploaded skills are disabled over
HTTP.`
		cmd.Example = "  openskill skills disable calculator"
		act = (*catalogue.Definitions).Disable
	}
	flags := bindSettings(cmd, "skills", "cli-dir", "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per skill")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withDefinitions(cmd.Context(), flags, func(all *catalogue.Definitions) error {
			for _, id := range args {
				d, err := act(all, cmd.Context(), skill.Local(), skill.ID(id))
				if err != nil {
					return ofSkill(id, err)
				}
				if err := a.printChanged(&d, asJSON); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// ofSkill puts the word of the command line before what is wrong with it.
func ofSkill(id string, err error) error {
	var e *skill.Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Message = skill.CleanText(id, 80) + ": " + e.Message
	return &c
}

func (a *cli) printChanged(d *skill.Descriptor, asJSON bool) error {
	if asJSON {
		return a.printJSON(d)
	}
	state := "enabled"
	switch {
	case d.Reason != "":
		state = "not enabled: " + skill.CleanText(d.Reason, 300)
	case !d.Enabled:
		state = "disabled"
	}
	return a.print("%s %s is %s\n", d.ID, d.Version, state)
}

func (a *cli) skillsUpdateCommand() *cobra.Command {
	var asJSON bool
	var description, reset string
	tokens, duration, rate := cliflag.Count{High: 1_000_000_000, Name: "N"}, cliflag.Count{High: 1_000_000_000, Name: "N"}, cliflag.Count{High: 1_000_000_000, Name: "N"}
	cmd := &cobra.Command{
		Use:   "update SKILL",
		Short: "Change the settings of an operator's skill",
		Long: `Change description and cost metadata of a skill. Changed values override the skill's
files until --reset restores description, cost_metadata or is_enabled (comma-separated).`,
		Example: `  openskill skills update calculator --rate-limit 30
  openskill skills update calculator --reset cost_metadata,is_enabled`,
		Args: takes(1, 1),
	}
	flags := bindSettings(cmd, "skills", "cli-dir", "state")
	cmd.Flags().Var(cliflag.Text(&description, "TEXT"), "description", "description for callers and models")
	cmd.Flags().Var(&rate, "rate-limit", "calls per minute; 0: no limit of its own")
	cmd.Flags().Var(&tokens, "tokens", "estimated tokens of a call")
	cmd.Flags().Var(&duration, "duration-ms", "estimated duration of a call in ms")
	cmd.Flags().Var(cliflag.Text(&reset, "NAMES"), "reset", "fields to reset to the values in the skill's files")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the skill as one JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		change := map[string]any{}
		if cmd.Flags().Changed("description") {
			change["description"] = description
		}
		cost := map[string]any{}
		for flag, f := range map[string]struct {
			key string
			n   *cliflag.Count
		}{"rate-limit": {"rate_limit_per_minute", &rate}, "tokens": {"estimated_tokens", &tokens}, "duration-ms": {"estimated_duration_ms", &duration}} {
			if cmd.Flags().Changed(flag) {
				cost[f.key] = f.n.Value
			}
		}
		if len(cost) > 0 {
			change["cost_metadata"] = cost
		}
		if err := resetIn(change, reset); err != nil {
			return err
		}
		if len(change) == 0 {
			return usage("nothing to change; set --description, --rate-limit, --tokens, --duration-ms or --reset")
		}
		b, err := json.Marshal(change)
		if err != nil {
			return hostFailed(err)
		}
		return a.withDefinitions(cmd.Context(), flags, func(all *catalogue.Definitions) error {
			d, err := all.Update(cmd.Context(), skill.Local(), skill.ID(args[0]), b)
			if err != nil {
				return ofSkill(args[0], err)
			}
			return a.printChanged(&d, asJSON)
		})
	}
	return cmd
}

// resetIn adds what is given back to a change.
func resetIn(change map[string]any, reset string) error {
	if reset == "" {
		return nil
	}
	for name := range strings.SplitSeq(reset, ",") {
		if !slices.Contains([]string{"description", "cost_metadata", "is_enabled"}, name) {
			return usage("--reset %s: use description, cost_metadata or is_enabled", quote(name))
		}
		if _, set := change[name]; set {
			return usage("%s is both changed and reset", name)
		}
		change[name] = nil
	}
	return nil
}

func (a *cli) skillsDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete SKILL…",
		Short: "Delete skills of the operator",
		Long: `Remove skills from the catalogue of every host on the database. Skills of openskill
skills create are removed; skills of files are hidden until openskill skills enable
restores them. Files are not changed.`,
		Example: "  openskill skills delete calculator",
		Args:    takes(1, many),
	}
	flags := bindSettings(cmd, "skills", "cli-dir", "state")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withDefinitions(cmd.Context(), flags, func(all *catalogue.Definitions) error {
			for _, id := range args {
				d, err := all.Delete(cmd.Context(), skill.Local(), skill.ID(id))
				if err != nil {
					return ofSkill(id, err)
				}
				if err := a.print("%s is deleted\n", d.ID); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

func (a *cli) skillsCreateCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create FILE",
		Short: "Create a skill of the operator",
		Long: `Create a skill. FILE, or - for standard input, is a JSON object like an entry of
skills.yaml, with name, description, input_schema and output_schema. Its code is the
script {name}.py of the CLI folder or, with type, runtime and entry, the folder of its
name among the skills. Until the code exists, the skill is listed and cannot be called.`,
		Example: "  openskill skills create ./voc_search.json",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, "skills", "cli-dir", "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the skill as one JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		entry, err := a.readEntry(args[0])
		if err != nil {
			return err
		}
		return a.withDefinitions(cmd.Context(), flags, func(all *catalogue.Definitions) error {
			d, err := all.Create(cmd.Context(), skill.Local(), entry)
			if err != nil {
				return err
			}
			return a.printChanged(&d, asJSON)
		})
	}
	return cmd
}

// maxEntry is more than a definition may have, in bytes.
const maxEntry = 256 << 10

func (a *cli) readEntry(name string) ([]byte, error) {
	from := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usage("%s cannot be read", quote(name))
		}
		defer f.Close()
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, maxEntry+1))
	switch {
	case err != nil:
		return nil, hostFailed(fmt.Errorf("cannot read the definition: %w", err))
	case len(b) > maxEntry:
		return nil, usage("the definition is too large; the limit is %d bytes", maxEntry)
	}
	return b, nil
}
