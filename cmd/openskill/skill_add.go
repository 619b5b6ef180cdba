package main

import (
	"context"

	"github.com/spf13/cobra"

	"openskill/host/admission/share"
	"openskill/internal/cliflag"
)

func (a *cli) skillAddCommand() *cobra.Command {
	var asJSON bool
	o := &sharing{}
	add := share.AddOptions{PullOptions: share.PullOptions{Dir: "."}}
	cmd := &cobra.Command{
		Use:   "add SOURCE",
		Short: "Install Agent Skills from GitHub or another host",
		Long: `Install Agent Skills (folders with a SKILL.md) into the folder --to. SOURCE is

  github:OWNER/REPO[/FOLDER][@REF]       a repository of GitHub; REF is a branch, tag or commit
  https://HOST/OWNER/REPO[/FOLDER][@REF] the same on another server
  https://HOST                           a host with /.well-known/agent-skills/index.json, such as openskill

The files are checked as uploads are. They are unsigned, so they are installed as
community skills: scripts run in the sandbox without requests and variables, unless
openskill skills allow allows them. With OPENSKILL_TRUST_POLICY, the policy decides.

openskill.lock records the commit and the digest of each skill; openskill skill pull
--locked installs the same files again. To update a skill, add it again.`,
		Example: `  openskill skill add github:anthropics/skills --all --to ./skills
  openskill skill add github:anthropics/skills/skills/pdf@main --to ./skills
  openskill skill add https://skills.example.com --skill pdf --to ./skills`,
		Args: takes(1, 1),
	}
	o.settings = bindSettings(cmd, "state")
	o.timeout.Value = shareLimit
	f := cmd.Flags()
	f.Var(cliflag.Text(&add.Dir, "DIR"), "to", "folder of skills")
	f.Var(cliflag.Texts(&add.Skills, "NAME"), "skill", "skill to install; repeatable; needed if the source has several")
	f.BoolVar(&add.All, "all", false, "install all skills of the source")
	f.Var(cliflag.Text(&o.policyFile, "FILE"), "policy", "trust policy file; default: OPENSKILL_TRUST_POLICY")
	f.BoolVar(&add.Downgrade, "allow-downgrade", false, "accept a lower version than the installed one")
	f.BoolVar(&o.plainHTTP, "plain-http", false, "connect without TLS, also to other machines")
	f.Var(&o.timeout, "timeout", "time limit in total")
	f.BoolVar(&asJSON, "json", false, `print {"data": […]}, as skill pull does`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if add.All && len(add.Skills) > 0 {
			return usage("--all and --skill exclude each other")
		}
		return a.share(cmd, o, func(ctx context.Context, j *job) error {
			from, err := share.ParseOrigin(args[0])
			if err != nil {
				return err
			}
			if add.Policy = j.accepts; add.Policy == nil {
				add.Policy = share.OfKeys(nil, true) // who names a source accepts what it has
			}
			done, err := j.Add(ctx, j.remote, from, add)
			if err != nil {
				return err
			}
			return a.tellInstalled(done, add.Dir, asJSON)
		})
	}
	return cmd
}
