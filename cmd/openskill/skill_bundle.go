package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"openskill/host/admission/share"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// bundledSkill is a skill of what skill export prints with --json.
type bundledSkill struct {
	SkillID  skill.ID `json:"skill_id"`
	Version  string   `json:"version"`
	Digest   string   `json:"digest"`
	Manifest string   `json:"manifest"`
	Signed   bool     `json:"signed"`
}

func (a *cli) skillExportCommand() *cobra.Command {
	var asJSON bool
	var out string
	o := &sharing{publishes: true}
	cmd := &cobra.Command{
		Use:   "export REFERENCE|FOLDER… --out FILE",
		Short: "Export skills to a bundle, for machines without a network",
		Long: `Write skills with their signatures into one file, an OCI image layout as a tar. Each is
a folder, or a reference to a registry. The same skills give the same bytes. Signatures
are not verified here, but by openskill skill import.`,
		Example: "  openskill skill export ./greeter registry.example.com/acme/counter:1.2.0 --out bundle.tar",
		Args:    takes(1, many),
	}
	o.settings = bindSettings(cmd, "state")
	o.bindRemote(cmd)
	f := cmd.Flags()
	f.Var(cliflag.Text(&out, "FILE"), "out", "bundle file; replaced if it exists")
	f.BoolVar(&asJSON, "json", false, `print {"path": …, "data": [{"skill_id": …, "version": …, "digest": …, "manifest": …, "signed": …}]}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if out == "" {
			return usage("--out is missing: the file that is written")
		}
		return a.share(cmd, o, func(ctx context.Context, j *job) error {
			all, err := a.parcels(ctx, j, args)
			if err != nil {
				return err
			}
			if err := writeBundle(out, all); err != nil {
				return err
			}
			list := make([]bundledSkill, len(all))
			for i, p := range all {
				list[i] = bundledSkill{p.ID, p.Version, p.Digest, p.Manifest(), p.Signature != nil}
			}
			if asJSON {
				return a.printJSON(map[string]any{"path": out, "data": list})
			}
			for _, s := range list {
				word := "unsigned"
				if s.Signed {
					word = "with its signature"
				}
				if err := a.print("%s %s  %s  %s\n", s.SkillID, s.Version, s.Digest, word); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// parcels makes a parcel of each folder and reference.
func (a *cli) parcels(ctx context.Context, j *job, names []string) ([]*share.Parcel, error) {
	var all []*share.Parcel
	for _, name := range names {
		var p *share.Parcel
		var err error
		if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
			if err := a.travels(name); err != nil {
				return nil, err
			}
			if p, err = j.Pack(ctx, name, j.staging); err == nil {
				err = p.Fits(nil)
				a.leftOut(p.LeftOut)
			}
		} else {
			var ref share.Reference
			if ref, err = share.ParseReference(name); err != nil {
				return nil, usage("%s is neither a folder nor a reference, HOST/REPOSITORY[:VERSION]", quote(name))
			}
			p, err = j.FetchParcel(ctx, j.remote, ref, j.staging)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// writeBundle writes a bundle, whole or not at all.
func writeBundle(out string, all []*share.Parcel) error {
	f, err := os.CreateTemp(filepath.Dir(out), ".bundle-*")
	if err != nil {
		return hostFailed(plain(err))
	}
	err = share.Export(f, all)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), out)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func (a *cli) skillImportCommand() *cobra.Command {
	var asJSON bool
	var prefix string
	dir := "."
	o := &sharing{}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Install the skills of a bundle, or push them to a registry",
		Long: `Install all skills of a bundle into the folder --to, by the rules of openskill skill
pull: signatures, trust policy, openskill.lock. If one is refused, none is installed. If
the policy lists registries for a publisher, "bundle" must be among them.

With --registry they are pushed there instead, as HOST/PREFIX/ID:VERSION, with their
signatures, which openskill skill pull verifies.`,
		Example: "  openskill skill import bundle.tar --key acme.pub --to ./skills\n  openskill skill import bundle.tar --registry registry.internal/skills",
		Args:    takes(1, 1),
	}
	o.settings = bindSettings(cmd, "state")
	o.bindRemote(cmd)
	o.bindPolicy(cmd, true)
	f := cmd.Flags()
	f.Var(cliflag.Text(&dir, "DIR"), "to", "folder of skills")
	f.Var(cliflag.Text(&prefix, "HOST[/PREFIX]"), "registry", "push the skills to this registry instead of installing them")
	f.BoolVar(&asJSON, "json", false, `print {"data": […]}, as skill pull and skill push do`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.share(cmd, o, func(ctx context.Context, j *job) error {
			b, err := j.OpenBundle(args[0])
			if err != nil {
				return err
			}
			if prefix != "" {
				return a.importInto(ctx, j, b, prefix, asJSON)
			}
			if j.accepts == nil {
				return noTrust()
			}
			done, err := j.Import(ctx, b, share.PullOptions{Dir: dir, Policy: j.accepts, Downgrade: o.downgrade})
			if err != nil {
				return err
			}
			return a.tellInstalled(done, dir, asJSON)
		})
	}
	return cmd
}

// importInto pushes the skills of a bundle to a registry.
func (a *cli) importInto(ctx context.Context, j *job, b *share.Bundle, prefix string, asJSON bool) error {
	all, err := j.Parcels(ctx, b, j.staging)
	if err != nil {
		return err
	}
	list := make([]pushed, 0, len(all))
	for _, p := range all {
		ref, err := share.InRegistry(prefix, p.ID)
		if err != nil {
			return err
		}
		done, err := j.Push(ctx, j.remote, ref, p, share.PushOptions{})
		if err != nil {
			return err
		}
		list = append(list, pushed{
			SkillID: p.ID, Version: p.Version, Digest: p.Digest, Reference: done.Reference, Manifest: done.Manifest, Tags: done.Tags,
			Signed: p.Signature != nil, Changed: done.Changed, LeftOut: []string{},
		})
	}
	if asJSON {
		return a.printJSON(map[string]any{"data": list})
	}
	for _, p := range list {
		if err := a.print("%s  %s\n", p.Reference, p.Manifest); err != nil {
			return err
		}
	}
	return nil
}
