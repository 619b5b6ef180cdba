package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

func (a *cli) skillsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "List, check and change skills",
		Example: `  openskill skills list
  openskill skills show calculator
  openskill skills disable calculator
  openskill skills validate ./my-skill`,
	}
	group(cmd)
	cmd.AddCommand(a.skillsListCommand(), a.skillsShowCommand(), a.skillsValidateCommand(), a.skillsCheckCommand(), a.skillsParityCommand())
	cmd.AddCommand(a.skillsDecideCommand(true), a.skillsDecideCommand(false), a.skillsUpdateCommand(), a.skillsDeleteCommand(), a.skillsCreateCommand())
	cmd.AddCommand(a.skillsTrustCommand(), a.skillsUntrustCommand(), a.skillsAllowCommand())
	return cmd
}

// listing is what the lists of skills and of Agent Skills print with --json.
type listing[T any] struct {
	listOf[T]
	Problems []manifest.Problem `json:"problems"`
}

func (a *cli) skillsListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [FOLDER…]",
		Short: "List the skills of this host or of folders",
		Long: `List the skills of the catalogue, or of the named folders. Skipped ones, and why, go to
standard error.`,
		Example: "  openskill skills list ./skills --json",
	}
	flags := bindSettings(cmd, "skills", "cli-dir", "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"data": […], "problems": […]}`)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		for _, folder := range args {
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				return usage("%s is not a folder", quote(folder))
			}
		}
		r, err := a.catalogue(flags, args)
		if err != nil {
			return err
		}
		l := listing[skill.Descriptor]{listOf[skill.Descriptor]{every(r)}, r.Problems()}
		if asJSON {
			if l.Problems == nil {
				l.Problems = []manifest.Problem{}
			}
			return a.printJSON(l)
		}
		a.problems(l.Problems)
		if len(l.Data) == 0 && len(args) == 0 {
			a.say("openskill: no skills found here; --skills names their folder")
		}
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		shown := trustShown(s)
		t := newTable("ID", "VERSION", "RUNNER", "FALLBACK", "TRUST", "STATE", "DESCRIPTION")
		for _, d := range l.Data {
			state := "enabled"
			if !d.Enabled {
				state = "disabled"
			}
			t.row(d.ID, d.Version, d.Runner, d.Fallback, shown(d.Trust, d.Digest), state, skill.CleanText(d.Description, 60))
		}
		return a.print("%s\n", t)
	}
	return cmd
}

// catalogue reads the skills of folders, or of the settings if there are none.
func (a *cli) catalogue(flags *settingsFlags, folders []string) (*manifest.Registry, error) {
	s, err := a.load(flags)
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		folders = nil
	} else {
		s.CLIDir, s.SkillConfigPath = "", "" // these folders and nothing else
	}
	r, err := app.Catalogue(s, app.Roots(s, folders))
	if err != nil {
		return nil, hostFailed(err)
	}
	if folders != nil {
		return r, nil
	}
	return a.asChanged(flags.cmd.Context(), s, r)
}

// every gives all skills of a catalogue.
func every(r *manifest.Registry) []skill.Descriptor {
	// An error is a wrong cursor, which no page gave.
	all, _ := everyPage(func(cursor string) ([]skill.Descriptor, string, error) { return r.List(cursor, manifest.MaxPage) })
	return all
}

func (a *cli) problems(list []manifest.Problem) {
	for _, p := range list {
		a.say("openskill: skipped: %s", skill.CleanText(p.String(), 1000))
	}
}

func (a *cli) skillsShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show SKILL…",
		Short: "Show the details of a skill",
		Long: `Show skills with their schemas and limits. SKILL is an id of the catalogue, or the path
of a skill's folder.`,
		Example: "  openskill skills show calculator\n  openskill skills show ./my-skill --json",
		Args:    takes(1, many),
	}
	flags := bindSettings(cmd, "skills", "cli-dir", "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per skill")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		for _, name := range args {
			d, err := a.find(flags, name)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.printJSON(d)
			} else {
				err = a.show(d)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// find looks a skill up by folder or id. The error says why there is none.
func (a *cli) find(flags *settingsFlags, name string) (*skill.Descriptor, error) {
	if manifest.Manifest(name) != "" {
		r, err := a.catalogue(flags, []string{name})
		if err != nil {
			return nil, err
		}
		if all := every(r); len(all) > 0 {
			return &all[0], nil
		}
		a.problems(r.Problems())
		return nil, failed(skill.InvalidManifest, "the skill in %s has problems", quote(name))
	}
	r, err := a.catalogue(flags, nil)
	if err != nil {
		return nil, err
	}
	s, err := r.Get(skill.ID(name), "")
	if err != nil {
		a.problems(r.Problems())
		return nil, failed(skill.NotFound, "skill %s not found, nor a folder of that name with a skill.yaml; list skills with openskill skills list", quote(name))
	}
	return &s.Descriptor, nil
}

func (a *cli) show(d *skill.Descriptor) error {
	t := newTable()
	row := func(k string, v any) { t.row(k, v) }
	row("id", d.ID)
	row("version", d.Version)
	row("description", skill.CleanText(d.Description, 2000))
	row("runner", d.Runner)
	if d.Fallback != "" {
		row("fallback", d.Fallback)
	}
	row("trust", d.Trust)
	row("digest", d.Digest)
	row("enabled", d.Enabled)
	row("limits", compact(d.Limits))
	row("permissions", compact(d.Permissions))
	if len(d.Requires) > 0 {
		row("requires", strings.Join(d.Requires, ", "))
	}
	if d.Cost != nil {
		row("cost", compact(d.Cost))
	}
	t.wrap(2, 90)
	return a.print("%s\n\ninput_schema:\n%s\n\noutput_schema:\n%s\n", t, indented(d.InputSchema), indented(d.OutputSchema))
}

func compact(v any) string {
	b, _ := json.Marshal(v) // structs of numbers and booleans
	return string(b)
}

func indented(b json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}
