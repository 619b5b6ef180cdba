package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"openskill/host/admission/share"
	"openskill/host/manifest"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// installed is what skill pull and skill import print for a skill with --json.
type installed struct {
	SkillID   skill.ID    `json:"skill_id"`
	Version   string      `json:"version"`
	Digest    string      `json:"digest"`
	Path      string      `json:"path"`
	Reference string      `json:"reference"`
	Manifest  string      `json:"manifest"`
	Publisher string      `json:"publisher"`
	Key       string      `json:"key"`
	Trust     skill.Trust `json:"trust"`
	Changed   bool        `json:"changed"`
}

func installedOf(p *share.Pulled, dir string) installed {
	return installed{
		SkillID: p.ID, Version: p.Version, Digest: p.Digest, Path: filepath.Join(dir, string(p.ID)), Reference: p.Reference, Manifest: p.Manifest,
		Publisher: p.Publisher, Key: p.Key, Trust: p.Trust, Changed: p.Changed,
	}
}

// tellInstalled prints a line for each skill.
func (a *cli) tellInstalled(all []*share.Pulled, dir string, asJSON bool) error {
	if asJSON {
		list := make([]installed, len(all))
		for i, p := range all {
			list[i] = installedOf(p, dir)
		}
		return a.printJSON(map[string]any{"data": list})
	}
	for _, p := range all {
		if err := a.tellOne(p, dir); err != nil {
			return err
		}
	}
	return nil
}

func (a *cli) tellOne(p *share.Pulled, dir string) error {
	word := "installed"
	if !p.Changed {
		word = "was there already"
	}
	return a.print("%s  %s %s  %s  %s\n", filepath.Join(dir, string(p.ID)), p.ID, p.Version, by(p.Publisher, p.Key, p.Trust), word)
}

// noTrust is the error without a trust policy.
func noTrust() error {
	return usage("say whose skills are accepted: --key with the publisher's public key, --policy, or --allow-unsigned")
}

func (a *cli) skillPullCommand() *cobra.Command {
	var asJSON, locked bool
	dir := "."
	o := &sharing{}
	cmd := &cobra.Command{
		Use:   "pull [REFERENCE]",
		Short: "Install a verified skill from an OCI registry",
		Long: `Install a skill into the folder --to, as a folder named by its id, with the signature
beside it. REFERENCE is HOST[:PORT]/REPOSITORY, with :VERSION or @DIGEST; default: the
newest version. The signature is verified by the keys of --key or of a trust policy, and
the files are checked as uploads are. A refused skill changes nothing.

openskill.lock records installed skills. A lower version than the installed one is
refused (DOWNGRADE_REFUSED), as is the same version with other files (CONFLICT). Without
REFERENCE the exact files of openskill.lock are installed again, by the keys in it.`,
		Example: `  openskill skill pull registry.example.com/acme/greeter --key acme.pub --to ./skills
  openskill skill pull registry.example.com/acme/greeter:0.1.0 --policy trust.yaml
  openskill skill pull --locked --to ./skills`,
		Args: takes(0, 1),
	}
	o.settings = bindSettings(cmd, "state")
	o.bindRemote(cmd)
	o.bindPolicy(cmd, true)
	f := cmd.Flags()
	f.Var(cliflag.Text(&dir, "DIR"), "to", "folder of skills")
	f.BoolVar(&locked, "locked", false, "install what "+manifest.LockName+" has, and replace folders that were changed since")
	f.BoolVar(&asJSON, "json", false, `print {"data": [{"skill_id": …, "version": …, "digest": …, "path": …, "publisher": …, "key": …, "trust": …, "changed": …}]}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if locked && len(args) == 1 {
			return usage("--locked installs what %s has; leave out the reference", manifest.LockName)
		}
		if len(args) == 0 {
			if _, err := os.Stat(filepath.Join(dir, manifest.LockName)); errors.Is(err, os.ErrNotExist) {
				return usage("%s has no %s; name a skill: HOST/REPOSITORY[:VERSION]", quote(dir), manifest.LockName)
			}
		}
		return a.share(cmd, o, func(ctx context.Context, j *job) error {
			opts := share.PullOptions{Dir: dir, Policy: j.accepts, Downgrade: o.downgrade}
			if len(args) == 0 {
				done, err := j.Restore(ctx, j.remote, opts)
				return errors.Join(a.tellInstalled(done, dir, asJSON), err)
			}
			if j.accepts == nil {
				return noTrust()
			}
			ref, err := share.ParseReference(args[0])
			if err != nil {
				return err
			}
			done, err := j.Pull(ctx, j.remote, ref, opts)
			if err != nil {
				return err
			}
			return a.tellInstalled([]*share.Pulled{done}, dir, asJSON)
		})
	}
	return cmd
}
