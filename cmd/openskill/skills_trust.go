package main

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/agentskills"
	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) skillsTrustCommand() *cobra.Command {
	var digest string
	cmd := &cobra.Command{
		Use:   "trust SKILL",
		Short: "Trust a pulled skill with its current files",
		Long: `Trust a pulled skill as if it were your own: it may request what only trusted skills
may, and its scripts may read the data folder. The trust is for the current files: after
any change the skill is untrusted again.

SKILL is the name of a skill, of an Agent Skill, or of its folder. Read the skill first;
--digest ensures that you trust what you read. The record is in the state folder, and
only this command writes it. A running host rereads Agent Skills within seconds, other
skills at reload or start.`,
		Example: "  openskill skills trust greeter --digest sha256:…",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, append([]string{"cli-dir"}, agentSettings...)...)
	cmd.Flags().Var(cliflag.Text(&digest, "DIGEST"), "digest", "expected digest of the folder, as openskill skills show prints it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := skill.ParseID(args[0])
		if err != nil {
			return usage("%s is not a valid skill name: use 1 to 64 of a-z, 0-9, - and _", quote(args[0]))
		}
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		folder, is, err := a.toTrust(cmd.Context(), s, name, digest)
		if err != nil {
			return err
		}
		err = a.recordTrust(cmd.Context(), flags, records.Change{Action: "skill.trust", Subject: string(name), Details: map[string]string{"digest": is}}, func() error {
			return manifest.Trust(cmd.Context(), s.StateDir, name, is)
		})
		if err != nil {
			return err
		}
		return a.print("%s %s in %s is trusted\n", name, is, folder)
	}
	return cmd
}

// toTrust finds the one folder that a name and, where it is not "", a digest mean.
func (a *cli) toTrust(ctx context.Context, s *config.Settings, name skill.ID, wanted string) (folder, digest string, err error) {
	folders, err := a.foldersOf(ctx, s, name)
	if err != nil {
		return "", "", err
	}
	origins := manifest.NewOrigins("") // whatever was trusted before
	found, own := map[string]string{}, ""
	for _, at := range folders {
		is, err := manifest.Digest(at)
		if err != nil {
			return "", "", failed(skill.InvalidManifest, "cannot trust the folder %s: %s", at, plain(err))
		}
		origin := origins.Of(at, skill.Trusted, func() string { return is })
		switch {
		case origin.Changed:
			return "", "", failed(skill.Conflict, "the folder %s changed since it was pulled: restore it with openskill skill pull --locked, or remove it from openskill.lock and trust it", at)
		case origin.Trust == skill.Trusted:
			own = at
		default:
			found[is] = at
		}
	}
	all := slices.Sorted(maps.Keys(found))
	switch {
	case found[wanted] != "":
		return found[wanted], wanted, nil
	case len(all) > 0 && wanted != "":
		return "", "", failed(skill.Conflict, "%s has the digest %s, not that of --digest: check what changed", name, strings.Join(all, " or "))
	case len(all) == 1:
		return found[all[0]], all[0], nil
	case len(all) > 1:
		return "", "", failed(skill.Conflict, "there are %d folders of %s with different files: name the one to trust with --digest, %s", len(all), name, strings.Join(all, " or "))
	case own != "":
		return "", "", failed(skill.Conflict, "%s in %s is already trusted: it was not pulled, or its publisher is trusted", name, own)
	}
	return "", "", failed(skill.NotFound, "skill %s not found; list skills with openskill skills list and openskill agent-skills list", name)
}

// foldersOf gives the folders of the skills and Agent Skills of a name, and those of the name
// itself, which may hold a skill that is refused until it is trusted.
func (a *cli) foldersOf(ctx context.Context, s *config.Settings, name skill.ID) ([]string, error) {
	all := map[string]bool{}
	roots := app.Roots(s, nil)
	r, err := app.Catalogue(s, roots)
	if err != nil {
		return nil, hostFailed(err)
	}
	if k, err := r.Get(name, ""); err == nil {
		all[k.Folder] = true
	}
	agents := app.AgentRoots(s, nil)
	options := app.AgentOptions(s)
	options.Log = slog.New(slog.DiscardHandler)
	source, err := agentskills.NewFileSource(agents, options)
	if err != nil {
		return nil, usage("%v", err)
	}
	list, err := source.Skills(ctx)
	if err != nil {
		return nil, failure(err)
	}
	for _, k := range list {
		if f, ok := k.(*agentskills.FileSkill); ok && f.Frontmatter().Name == string(name) {
			all[f.Path()] = true
		}
	}
	for _, r := range roots {
		agents = append(agents, agentskills.Root{Path: r.Path})
	}
	for _, r := range agents {
		for _, at := range []string{r.Path, filepath.Join(r.Path, string(name))} {
			at, err := filepath.Abs(at)
			if err == nil {
				at, err = filepath.EvalSymlinks(at)
			}
			if err == nil && filepath.Base(at) == string(name) && manifest.NewOrigins("").IsSkill(at) {
				all[at] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

func (a *cli) skillsUntrustCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "untrust SKILL…",
		Short: "Revoke the trust in skills",
		Long: `Revoke the trust of openskill skills trust. The skills are untrusted again: on a running
host, Agent Skills within seconds, other skills at reload or start.`,
		Example: "  openskill skills untrust greeter",
		Args:    takes(1, many),
	}
	flags := bindSettings(cmd, "state")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		for _, name := range args {
			err := a.recordTrust(cmd.Context(), flags, records.Change{Action: "skill.untrust", Subject: name}, func() error {
				was, err := manifest.Untrust(cmd.Context(), s.StateDir, skill.ID(name))
				if err == nil && !was {
					err = &skill.Error{Op: "skills.untrust", Code: skill.NotFound, Message: "no skill is trusted by the name " + quote(name)}
				}
				return err
			})
			if err != nil {
				return err
			}
			if err := a.print("%s is not trusted by name any more\n", name); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// recordTrust puts a change of trust on record before it is made.
func (a *cli) recordTrust(ctx context.Context, flags *settingsFlags, c records.Change, do func() error) error {
	return a.withDatabase(ctx, flags, false, hostFailed, func(db *store.DB) error {
		if err := records.Around(ctx, records.NewStore(db), skill.Local(), c, do); err != nil {
			return keysFailed(err)
		}
		return nil
	})
}

// trustShown is the trust of a folder with a digest, as lists show it.
func trustShown(s *config.Settings) func(trust skill.Trust, digest string) string {
	named, _ := manifest.ReadNamed(s.StateDir) // told with the problems
	return func(trust skill.Trust, digest string) string {
		if trust == skill.Trusted && named.Has(digest) {
			return "trusted by name"
		}
		return trust.String()
	}
}
