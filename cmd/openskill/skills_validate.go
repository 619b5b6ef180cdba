package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/agentskills"
	"openskill/host/manifest"
	"openskill/plugins/extism"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// verdict is what skills validate prints with --json.
type verdict struct {
	Valid    bool               `json:"valid"`
	Folders  []string           `json:"folders"` // that were looked at as the operator's own
	Problems []manifest.Problem `json:"problems"`
	Warnings []manifest.Problem `json:"warnings"` // defaults for missing keys
	Uploads  []report           `json:"uploads"`  // that were looked at as those of strangers
}

func (a *cli) skillsValidateCommand() *cobra.Command {
	var asJSON, upload bool
	cmd := &cobra.Command{
		Use:   "validate FOLDER|ARCHIVE…",
		Short: "Print all problems of skills with file and line",
		Long: `Print every problem of the skills in folders, one per line: file:line: message. A folder
is a skill's own, with a skill.yaml, a SKILL.md (checked against the specification of
Agent Skills), or both; or a folder of skills. Built modules are checked too; unbuilt
ones are not a problem. The exit code is 1 if there is any problem.

An archive (zip, tar.gz) is checked like a stranger's upload, with the caps of the
settings, and the admission report is printed. Nothing is stored or run. --upload checks
a folder in the same way.`,
		Example: `  openskill skills validate ./my-skill
  openskill skills validate my-skill.zip
  openskill skills validate --upload ./my-skill --json`,
		Args: takes(1, many),
	}
	flags := bindSettings(cmd, "") // --config alone: caps come from the environment or a file
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"valid": …, "folders": […], "problems": […], "warnings": […], "uploads": […]}`)
	cmd.Flags().BoolVar(&upload, "upload", false, "check folders like uploads of strangers")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v := verdict{Valid: true, Problems: []manifest.Problem{}, Warnings: []manifest.Problem{}, Uploads: []report{}}
		for _, name := range args {
			info, err := os.Stat(name)
			switch {
			case err != nil || !info.IsDir() && !info.Mode().IsRegular():
				return usage("%s is not a folder, nor an archive", quote(name))
			case !info.IsDir() || upload:
				r, err := a.admission(cmd.Context(), flags, name, info.IsDir())
				if err != nil {
					return err
				}
				v.Uploads = append(v.Uploads, report{name, r})
				v.Valid = v.Valid && r.Verdict == "accepted"
			default:
				s, err := a.load(flags)
				if err != nil {
					return err
				}
				found, problems := skillFolders(name)
				v.Problems = append(v.Problems, problems...)
				for _, f := range found {
					v.Folders = append(v.Folders, f)
					problems, warnings := validate(f, s.CLIDir)
					v.Problems = append(v.Problems, problems...)
					v.Warnings = append(v.Warnings, warnings...)
				}
				a.deeper(name, found)
			}
		}
		v.Valid = v.Valid && len(v.Problems) == 0
		if err := a.verdict(&v, asJSON); err != nil {
			return err
		}
		if !v.Valid {
			return exit(exitFailed)
		}
		return nil
	}
	return cmd
}

func (a *cli) verdict(v *verdict, asJSON bool) error {
	if asJSON {
		return a.printJSON(v)
	}
	for _, p := range v.Problems {
		// A line of its own each: what a stranger wrote must not make another.
		if err := a.print("%s\n", skill.CleanText(p.String(), 2000)); err != nil {
			return err
		}
	}
	for _, p := range v.Warnings {
		p.Message = "warning: " + p.Message
		if err := a.print("%s\n", skill.CleanText(p.String(), 2000)); err != nil {
			return err
		}
	}
	for _, u := range v.Uploads {
		if err := a.print("%s: %s", skill.CleanText(u.Name, 200), u.Report.Text()); err != nil {
			return err
		}
	}
	switch {
	case len(v.Problems) > 0:
		a.say("openskill: %d problems", len(v.Problems))
	case len(v.Folders) > 0:
		names, more := v.Folders, ""
		if over := len(names) - shownFolders; over > 0 {
			names, more = names[:shownFolders], fmt.Sprintf(" and %d more", over)
		}
		return a.print("%d checked, no problems: %s%s\n", len(v.Folders), strings.Join(names, ", "), more)
	}
	return nil
}

// skillFolders are the skills of a folder, itself or those in it, and what is wrong beside them.
func skillFolders(folder string) ([]string, []manifest.Problem) {
	if isSkill(folder) {
		return []string{folder}, nil
	}
	found, problems := agentskills.Folders(folder)
	entries, _ := os.ReadDir(folder) // an unreadable one is a problem that Validate tells
	for _, e := range entries {
		sub := filepath.Join(folder, e.Name())
		if e.Type()&fs.ModeSymlink == 0 && e.IsDir() && !strings.HasPrefix(e.Name(), ".") && manifest.Manifest(sub) != "" && !slices.Contains(found, sub) {
			found = append(found, sub)
		}
	}
	slices.Sort(found)
	if _, err := os.Lstat(filepath.Join(folder, manifest.ListFile)); err == nil || len(found)+len(problems) == 0 || manifest.HasFlat(folder) {
		found = append(found, folder)
	}
	return found, problems
}

// shownFolders is how many folders are named where there is nothing to say of them.
const shownFolders = 8

// deeper says that there are skills in a folder further down than it was looked for, as
// hosts look: whoever points at a repository of skills may think that all were checked.
func (a *cli) deeper(folder string, found []string) {
	if isSkill(folder) { // what is in it is its own
		return
	}
	const most = 20_000 // files and folders; somebody's whole disk is not gone through for a hint
	var parents []string
	count, seen := 0, 0
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { // what cannot be read, validate tells
		seen++
		switch name := d.Name(); {
		case seen > most:
			return fs.SkipAll
		case err != nil || !d.IsDir():
			return nil
		case path != folder && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__"):
			return fs.SkipDir
		case path != folder && slices.Contains(found, path):
			return fs.SkipDir
		case !isSkill(path):
			return nil
		}
		count++
		if p := lookedFrom(folder, path); !slices.Contains(parents, p) {
			parents = append(parents, p)
		}
		return fs.SkipDir
	})
	if count == 0 {
		return
	}
	slices.Sort(parents)
	const named = 4
	more := ""
	if len(parents) > named {
		parents, more = parents[:named], ", …"
	}
	for i, p := range parents {
		parents[i] = quote(p)
	}
	a.say("openskill: %d skills deeper in %s were not looked at, and hosts do not find them from there; name the folders that have them: %s%s",
		count, quote(folder), strings.Join(parents, ", "), more)
}

// lookedFrom is the folder highest below another from which a skill's is found.
func lookedFrom(top, folder string) string {
	from := filepath.Dir(folder)
	for up := filepath.Dir(from); len(up) > len(filepath.Clean(top)); up = filepath.Dir(up) {
		if found, _ := agentskills.Folders(up); !slices.Contains(found, folder) {
			break
		}
		from = up
	}
	return from
}

// isSkill reports whether a folder is a skill's own.
func isSkill(folder string) bool {
	_, err := os.Lstat(filepath.Join(folder, agentskills.FileName))
	return err == nil || manifest.Manifest(folder) != ""
}

// validate gives the problems of one skill, by each of the files that make it one.
func validate(folder, cliDir string) (problems, warnings []manifest.Problem) {
	if _, err := os.Lstat(filepath.Join(folder, agentskills.FileName)); err != nil {
		return validateManifest(folder, cliDir)
	}
	problems = agentskills.Validate(folder)
	if manifest.Manifest(folder) != "" {
		var more []manifest.Problem
		more, warnings = validateManifest(folder, cliDir)
		problems = append(problems, more...)
	}
	return problems, warnings
}

// validateManifest gives the problems of a manifest, or else of its module.
func validateManifest(folder, cliDir string) (problems, warnings []manifest.Problem) {
	one := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1} // nothing runs
	o := manifest.Options{
		Roots: []manifest.Root{{Path: folder, Trust: skill.Trusted}}, CLIDir: cliDir,
		Defaults: one, Caps: one, Packages: runtimes.CheckRequires,
	}
	if problems, warnings = manifest.Validate(folder, o); len(problems) > 0 {
		return problems, warnings
	}
	r, err := manifest.Open(o)
	if err != nil {
		return []manifest.Problem{{File: folder, Message: err.Error()}}, warnings
	}
	problems = r.Problems()
	for _, d := range every(r) {
		s, err := r.Get(d.ID, "")
		if err != nil || !s.Primary.Kind.OwnModule() {
			continue
		}
		entry := filepath.Join(folder, filepath.FromSlash(s.Primary.File()))
		if manifest.Manifest(folder) == "" { // beside a list, or a flat manifest
			entry = filepath.Join(folder, string(d.ID), filepath.FromSlash(s.Primary.File()))
		}
		if _, err := os.Lstat(entry); err != nil {
			continue // still to be built
		}
		b, size, err := readModule(entry)
		switch {
		case err != nil:
			problems = append(problems, manifest.Problem{File: entry, Message: err.Error()})
			continue
		case b == nil:
			problems = append(problems, manifest.Problem{File: entry, Message: refusedSize(size).Error()})
			continue
		}
		_, err = wasm.Check(b, nil)
		if _, function := extism.Split(s.Primary.Entry); err == nil && s.Primary.Kind == skill.WasmExtism {
			_, err = extism.Command(b, function)
		}
		if err != nil {
			problems = append(problems, manifest.Problem{File: entry, Message: err.Error()})
		}
	}
	return problems, warnings
}
