package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/dispatch/allow"
	"openskill/host/packages"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// allowFlags are those of skills allow beside the settings.
type allowFlags struct {
	http        []string
	variables   variables
	digest      string
	yes, revoke bool
	packages    bool
	asJSON      bool
}

func (a *cli) skillsAllowCommand() *cobra.Command {
	var o allowFlags
	cmd := &cobra.Command{
		Use:   "allow SKILL",
		Short: "Allow the scripts of an Agent Skill requests and variables",
		Long: `Allow the scripts of an Agent Skill requests and variables: those that its scripts ask
for, as openskill skills check finds them, or others. Without --http and --env, the command
shows what is proposed and what has changed, and asks; --yes agrees. Agreeing allows the
proposed requests, and what was allowed before. Variables are never allowed unnamed.

With --packages, the packages that the scripts import and do not have are added, as by
openskill packages add, which has more flags; without --yes, nothing else is allowed then.

What is allowed is for the current files. When they change, the scripts do not run until
you allow them again, or revoke. --http and --env add to what these files are allowed.

A variable with --for is a secret: scripts have a placeholder, and requests to HOST are sent
with the value. HOST is a name (https), *.example.com, or an address such as
http://127.0.0.1:8080. Without --for, scripts see the value. Values are stored encrypted.`,
		Example: `  openskill skills allow weather
  openskill skills allow weather --http https://api.example.com,GET --env API_KEY --for api.example.com
  openskill skills allow weather --packages --yes
  openskill skills allow weather --revoke`,
		Args: takes(1, 1),
	}
	flags := bindSettings(cmd, append([]string{"cli-dir", "debug"}, agentSettings...)...)
	f := cmd.Flags()
	f.Var(cliflag.Texts(&o.http, "URL[,METHODS]"), "http", "allow requests to URL and below; GET and HEAD unless METHODS says others; may repeat")
	o.variables.flags(f, "give scripts a variable")
	f.Var(cliflag.Text(&o.digest, "DIGEST"), "digest", "expected digest of the folder, as this command prints it")
	f.BoolVar(&o.yes, "yes", false, "agree to the proposal")
	f.BoolVar(&o.revoke, "revoke", false, "revoke what is allowed")
	f.BoolVar(&o.packages, "packages", false, "add the packages shown as not added")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object; without --yes, --http and --env nothing is changed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := skill.ParseID(args[0]); err != nil {
			return usage("%s is not a valid skill name: use 1 to 64 of a-z, 0-9, - and _", quote(args[0]))
		}
		return a.allow(cmd.Context(), flags, &o, args[0])
	}
	return cmd
}

func (a *cli) allow(ctx context.Context, flags *settingsFlags, o *allowFlags, name string) error {
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	h, err := app.Open(s, &app.Options{Log: a.logger(level(s, slog.LevelError)), Roots: []string{}, Brief: true})
	if err != nil {
		return hostFailed(err)
	}
	defer h.Close()
	w := allow.Wish{Digest: o.digest, HTTP: o.http, Env: o.variables.list}
	named := len(w.HTTP) > 0 || len(w.Env) > 0
	if o.packages && o.asJSON {
		return usage("--packages does not go with --json: use openskill packages add FOLDER --json")
	}
	if o.revoke {
		if named || o.yes || o.packages {
			return usage("--revoke takes no other flags")
		}
		if err := h.Allowing().Revoke(ctx, skill.Local(), name); err != nil {
			return allowFailed(err)
		}
		return a.print("%s: nothing is allowed any more\n", name)
	}
	r, err := h.Allowing().Review(ctx, skill.Local(), name)
	if err != nil {
		return allowFailed(err)
	}
	if !o.asJSON {
		if err := a.review(r); err != nil {
			return err
		}
	}
	if !named && !o.yes && !o.packages {
		if o.asJSON {
			return a.printJSON(r)
		}
		if yes, err := a.agrees(ctx); err != nil || !yes {
			return err
		}
	}
	w.Digest = r.Digest // what was shown
	if o.digest != "" {
		w.Digest = o.digest
	}
	if o.packages {
		if _, err := w.Grant(r); skill.CodeOf(err) == skill.Conflict { // before anything is added
			return allowFailed(err)
		}
		if err := a.addShown(ctx, flags, r); err != nil {
			return err
		}
		if !named && (!o.yes || len(r.HTTP) == 0 && r.Grant == nil) {
			return nil
		}
	}
	if r, err = h.Allowing().Allow(ctx, skill.Local(), name, w); err != nil {
		return allowFailed(err)
	}
	if o.asJSON {
		return a.printJSON(r)
	}
	return a.allowed(r)
}

// addShown adds the packages that a review has shown, and no others: in the versions that the
// folder declares, if it does.
func (a *cli) addShown(ctx context.Context, flags *settingsFlags, r *allow.Review) error {
	declared, err := askedPackages(r.Folder, nil)
	if err != nil {
		return err
	}
	var asked []packages.Requirement
	for _, ask := range r.Packages {
		p, err := packages.ParseRequirement(ask.Name, "")
		if err != nil {
			return failed(skill.InvalidArgument, "%s:%d: %s", ask.File, ask.Line, err)
		}
		p.From = ask.File
		if i := slices.IndexFunc(declared, func(d packages.Requirement) bool { return d.Ecosystem == p.Ecosystem && d.Name == p.Name }); i >= 0 {
			p = declared[i]
		}
		asked = append(asked, p)
	}
	if len(asked) == 0 {
		return nil
	}
	return a.changeAsked(ctx, &packagesFlags{settings: flags}, r.Folder, asked, (*packages.Store).Add)
}

// agrees asks the person at the terminal.
func (a *cli) agrees(ctx context.Context) (bool, error) {
	f, ok := a.stdin.(*os.File)
	ok = ok && terminal(f) && !isNull(f)
	if !ok {
		return false, usage("nothing was allowed: add --yes, or name what to allow with --http and --env")
	}
	_, _ = fmt.Fprint(a.stderr, "Allow the requests above? [y/N] ")
	line, err := bufio.NewReader(io.LimitReader(f, 100)).ReadString('\n')
	if ctx.Err() != nil || err != nil && line == "" {
		return false, failed(skill.Cancelled, "interrupted")
	}
	if yes := strings.ToLower(strings.TrimSpace(line)); yes != "y" && yes != "yes" {
		return false, a.print("nothing was allowed\n")
	}
	return true, nil
}

// review shows what scripts ask for, what is allowed, and what has changed.
func (a *cli) review(r *allow.Review) error {
	if err := a.print("%s %s\n", r.Skill, r.Digest); err != nil {
		return err
	}
	t := newTable("ASKS FOR", "WHERE", "STATE")
	for _, ask := range r.HTTP {
		has := r.Grant != nil && slices.Contains(r.Grant.HTTP, ask.Name)
		t.row(skill.CleanText(ask.Name, 200), where(&ask), askState(r, has, ask.New))
	}
	for _, ask := range r.Env {
		has := r.Grant != nil && slices.ContainsFunc(r.Grant.Env, func(v allow.Variable) bool { return v.Name == ask.Name })
		t.row(skill.CleanText(ask.Name, 128), where(&ask), askState(r, has, ask.New))
	}
	for _, ask := range r.Packages {
		t.row(skill.CleanText(ask.Name, 200), where(&ask), "not added")
	}
	if len(r.HTTP)+len(r.Env)+len(r.Packages) == 0 {
		if err := a.print("its scripts ask for no requests, variables or packages that are known\n"); err != nil {
			return err
		}
	} else if err := a.print("%s\n", t); err != nil {
		return err
	}
	c := r.Changes
	if c == nil {
		return nil
	}
	var lines []string
	if c.Unknown {
		lines = append(lines, "too many files to say which")
	}
	for _, of := range []struct {
		what string
		list []string
	}{{"added", c.Added}, {"changed", c.Changed}, {"removed", c.Removed}, {"not asked for any more", c.Gone}} {
		for _, name := range of.list {
			lines = append(lines, of.what+": "+name)
		}
	}
	return a.print("changed since %s, when %s allowed it:\n  %s\n", r.Grant.At.Format("2006-01-02 15:04"), skill.CleanText(r.Grant.By, 80), strings.Join(lines, "\n  "))
}

func where(ask *allow.Ask) string {
	if ask.Line == 0 {
		return skill.CleanText(ask.File, 200)
	}
	return skill.CleanText(fmt.Sprintf("%s:%d", ask.File, ask.Line), 200)
}

func askState(r *allow.Review, has, fresh bool) string {
	switch {
	case has && r.State == allow.Changed:
		return "allowed before"
	case has:
		return "allowed"
	case fresh && r.Grant != nil:
		return "new"
	}
	return ""
}

// allowed shows a grant that was made.
func (a *cli) allowed(r *allow.Review) error {
	t := newTable("ALLOWED", "FOR")
	for _, rule := range r.Grant.HTTP {
		t.row(rule, "")
	}
	for i := range r.Grant.Env {
		v := &r.Grant.Env[i]
		places := v.Places()
		if places == "" {
			places = "scripts, which see the value"
		}
		t.row(v.Name, places)
	}
	if err := a.print("%s\n", t); err != nil {
		return err
	}
	for _, ask := range r.Packages {
		a.say("openskill: %s is not added; if the scripts need it: openskill skills allow %s --packages", skill.CleanText(ask.Name, 200), r.Skill)
	}
	for _, ask := range r.Unasked() {
		a.say("openskill: %s is not allowed; if the scripts need it: openskill skills allow %s --env %s --for HOST", skill.CleanText(ask.Name, 128), r.Skill, skill.CleanText(ask.Name, 128))
	}
	return nil
}

// allowFailed says whose fault an error is.
func allowFailed(err error) error {
	var e *skill.Error
	switch {
	case !errors.As(err, &e) || e.Code == skill.Internal || e.Code == skill.AuditUnavailable:
		return hostFailed(cause(err))
	case e.Code == skill.InvalidArgument:
		return usage("%s", e.Message)
	}
	return &exitError{exitFailed, e}
}

func plainMessage(err error) string {
	if e, ok := errors.AsType[*skill.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
