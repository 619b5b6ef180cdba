package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/admission/share"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// pushed is what skill push prints with --json.
type pushed struct {
	SkillID   skill.ID `json:"skill_id"`
	Version   string   `json:"version"`
	Digest    string   `json:"digest"` // of the files that travel
	Reference string   `json:"reference"`
	Manifest  string   `json:"manifest"` // digest of the OCI manifest
	Tags      []string `json:"tags"`
	Signed    bool     `json:"signed"`
	Changed   bool     `json:"changed"` // it was not there before
	LeftOut   []string `json:"left_out"`
}

func (a *cli) skillPushCommand() *cobra.Command {
	var asJSON, force bool
	var more []string
	o := &sharing{publishes: true}
	cmd := &cobra.Command{
		Use:   "push FOLDER REFERENCE",
		Short: "Push a skill to an OCI registry",
		Long: `Push the skill in FOLDER to a registry. REFERENCE is HOST[:PORT]/REPOSITORY; the tag is
the version, and --tag adds others. The skill must be built and acceptable to a host.
The signature beside the folder is pushed too.

Hidden files, target, node_modules, __pycache__ and .pyc files are left out, and not
part of the digest. The same files give the same artifact. An existing version with
other files is refused (CONFLICT): raise the version.

Credentials come from Docker's configuration (docker login), or from --username and
--password-stdin. Registries on other machines need TLS.`,
		Example: "  openskill skill push ./greeter registry.example.com/acme/greeter --tag latest\n  openskill skill push ./greeter localhost:5000/acme/greeter",
		Args:    takes(2, 2),
	}
	o.settings = bindSettings(cmd, "state")
	o.bindRemote(cmd)
	f := cmd.Flags()
	f.Var(cliflag.Texts(&more, "TAG"), "tag", "additional tag, such as latest; repeatable")
	f.Var(cliflag.Texts(&o.keys, "KEY"), "key", "accepted public key, or its .pub file; repeatable")
	f.BoolVar(&force, "force", false, "replace an existing version that has other files")
	f.BoolVar(&asJSON, "json", false, `print {"skill_id": …, "version": …, "digest": …, "reference": …, "manifest": …, "tags": […], "signed": …, "changed": …, "left_out": […]}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := share.ParseReference(args[1])
		if err != nil {
			return a.shareFailed(err)
		}
		return a.share(cmd, o, func(ctx context.Context, j *job) error {
			if err := a.travels(args[0]); err != nil {
				return err
			}
			p, err := j.Pack(ctx, args[0], j.staging)
			if err == nil {
				err = p.Fits(j.keys)
			}
			if err != nil {
				return err
			}
			done, err := j.Push(ctx, j.remote, ref, p, share.PushOptions{Tags: more, Force: force})
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printJSON(pushed{
					SkillID: p.ID, Version: p.Version, Digest: p.Digest, Reference: done.Reference, Manifest: done.Manifest, Tags: done.Tags,
					Signed: p.Signature != nil, Changed: done.Changed, LeftOut: nonNil(p.LeftOut),
				})
			}
			a.leftOut(p.LeftOut)
			word := "pushed"
			if !done.Changed {
				word = "was there already"
			}
			return a.print("%s  %s  %s\n", done.Reference, done.Manifest, word)
		})
	}
	return cmd
}

func (a *cli) skillSearchCommand() *cobra.Command {
	var asJSON bool
	o := &sharing{publishes: true}
	cmd := &cobra.Command{
		Use:   "search REGISTRY[/PREFIX] [WORDS…]",
		Short: "Search for skills in a registry",
		Long: `List the skills of a registry below PREFIX whose name or description has all WORDS, with
their versions. If a registry cannot list its contents, name the skill. Descriptions
from a registry are not verified; openskill skill pull verifies skills.`,
		Example: "  openskill skill search localhost:5000\n  openskill skill search registry.example.com/acme log json",
		Args:    takes(1, many),
	}
	o.settings = bindSettings(cmd, "state")
	o.bindRemote(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"data": [{"id": …, "reference": …, "version": …, "versions": […], "description": …, "runner": …, "signed": …}], "more": …}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.share(cmd, o, func(ctx context.Context, j *job) error {
			host, prefix, _ := strings.Cut(args[0], "/")
			found, more, err := j.Search(ctx, j.remote, host, prefix, args[1:])
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(struct {
					Data []share.Found `json:"data"`
					More bool          `json:"more"`
				}{found, more})
			}
			if len(found) == 0 {
				a.say("no skill was found")
			} else {
				t := newTable("REFERENCE", "ID", "VERSIONS", "SIGNED", "DESCRIPTION")
				for i := range found {
					s := &found[i]
					signed := "no"
					if s.Signed {
						signed = "yes"
					}
					t.row(s.Reference, s.ID, skill.CleanText(strings.Join(s.Versions, " "), 60), signed, skill.CleanText(s.Description, 80))
				}
				if err := a.print("%s\n", t.String()); err != nil {
					return err
				}
			}
			if more {
				a.say("there are perhaps more: the registry has more than was looked at, or something of it could not be read")
			}
			return nil
		})
	}
	return cmd
}
