package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/packages"
	"openskill/internal/cliflag"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// remotePackages are the flags that have a command change a version of an upload on a running host
// instead of a folder.
type remotePackages struct {
	remoteFlags

	cmd    *cobra.Command
	tenant string
}

func bindRemotePackages(cmd *cobra.Command) *remotePackages {
	o := &remotePackages{cmd: cmd}
	o.bind(cmd, "with the upload SKILL@VERSION to use instead of a folder")
	cmd.Flags().Var(cliflag.Text(&o.tenant, "TENANT"), "tenant", "tenant of the upload; default: your own")
	return o
}

// used reports whether the flags name a host; else those that go with it are refused.
func (o *remotePackages) used() (bool, error) {
	f := o.cmd.Flags()
	if o.remote == "" {
		for _, name := range []string{"key-env", "tenant"} {
			if f.Changed(name) {
				return false, usage("--%s needs --remote", name)
			}
		}
		return false, nil
	}
	for _, name := range []string{"state", "python", "from", "min-age", "allowed"} {
		if g := f.Lookup(name); g != nil && g.Changed {
			return true, usage("--%s does not apply with --remote: that host has its own settings", name)
		}
	}
	return true, nil
}

// version is the version that the first argument names, on the host of the flags.
func (o *remotePackages) version(a *cli, arg string) (c *client.Client, id skill.ID, version string, err error) {
	name, version, found := strings.Cut(arg, "@")
	if id, err = skill.ParseID(name); err != nil || !found || version == "" {
		return nil, "", "", usage("%s is not a version of an upload; use SKILL@VERSION, such as weather@1.0.0", quote(arg))
	}
	c, err = o.client(a, "openskill-packages")
	return c, id, version, err
}

// change adds packages to a version, or resolves its packages again.
func (o *remotePackages) change(ctx context.Context, a *cli, args []string, update, asJSON bool) error {
	c, id, version, err := o.version(a, args[0])
	if err != nil {
		return err
	}
	stop := a.after(time.Second, "openskill: the host downloads packages")
	out, err := c.AddPackages(ctx, id, version, &client.PackageWish{Packages: args[1:], Update: update, Tenant: o.tenant})
	stop()
	return a.remoteChanged(out, err, asJSON)
}

// remove takes the packages of a version away.
func (o *remotePackages) remove(ctx context.Context, a *cli, args []string) error {
	c, id, version, err := o.version(a, args[0])
	if err != nil {
		return err
	}
	if len(args) > 1 {
		return usage("with --remote all packages of a version are removed; leave out %s", quote(args[1]))
	}
	out, err := c.RemovePackages(ctx, id, version, o.tenant)
	return a.remoteChanged(out, err, false)
}

// list prints the packages of a version, or a bill of materials.
func (o *remotePackages) list(ctx context.Context, a *cli, args []string, asJSON, sbom bool) error {
	if len(args) == 0 {
		return usage("--remote needs SKILL@VERSION")
	}
	c, id, version, err := o.version(a, args[0])
	if err != nil {
		return err
	}
	if sbom {
		bill, err := c.Bill(ctx, id, version, o.tenant)
		if err != nil {
			return remoteFailed(err)
		}
		return a.printJSON(bill)
	}
	of, err := c.Version(ctx, id, version, o.tenant)
	if err != nil {
		return remoteFailed(err)
	}
	var report struct {
		Packages json.RawMessage `json:"packages"`
	}
	err = json.Unmarshal(of.Report, &report)
	lock := &packages.Lock{Packages: []packages.Package{}}
	if err == nil && report.Packages != nil {
		lock, err = packages.ReadPortable(report.Packages)
	}
	if err != nil {
		return hostFailed(err)
	}
	return a.printLock(args[0], lock, asJSON)
}

// remoteChanged prints what a change of the packages of a version came to.
func (a *cli) remoteChanged(out *skill.PackagesResult, err error, asJSON bool) error {
	if err != nil {
		return remoteFailed(err)
	}
	if asJSON {
		return a.printJSON(out)
	}
	lines := make([]string, 0, len(out.Added)+len(out.Removed))
	for _, p := range out.Removed {
		lines = append(lines, "- "+skill.CleanText(p, 300)+"\n")
	}
	for _, p := range out.Added {
		lines = append(lines, "+ "+skill.CleanText(p, 300)+"\n")
	}
	return a.print("%s%s %s is %s\n", strings.Join(lines, ""), skill.CleanText(string(out.ID), 80), skill.CleanText(out.Version, 80), skill.CleanText(string(out.State), 20))
}

// remoteFailed is how a command ends whose host refused, or cannot be reached.
func remoteFailed(err error) error {
	var e *client.Error
	switch {
	case errors.Is(err, context.Canceled):
		return failed(skill.Cancelled, "interrupted; nothing was changed")
	case errors.As(err, &e) && e.Status == skill.Unauthorized.Status():
		return usage("authentication required: name the environment variable with your key by --key-env")
	case errors.As(err, &e) && e.Code != "":
		return failed(e.Code, "%s", e.Message)
	}
	return hostFailed(err)
}
