package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"openskill/host/api"
	"openskill/host/catalogue"
	"openskill/host/packages"
	"openskill/host/pysource"
	"openskill/host/pysource/preflight"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// MinPackageAge is how old a release of a package must be at least: most malicious releases are
// found within days.
const MinPackageAge = 7 * 24 * time.Hour

// PackageOptions are those for the runtimes of this program. Compile and what commands take as
// flags is the caller's.
func PackageOptions(store *runtimes.Store, python string) (*packages.Options, error) {
	o := &packages.Options{Python: python, MinAge: MinPackageAge, Library: map[string]bool{}}
	library, had, err := store.Modules("scientific")
	if err != nil {
		return nil, err
	}
	for _, m := range library {
		o.Library[m] = true
	}
	for _, p := range had {
		o.Had = append(o.Had, packages.Had{Name: p.Name, Version: p.Version})
	}
	o.PythonVersion = store.List()[0].Version
	return o, nil
}

// CompileWith gives what compiles packages of Python for a tenant.
func CompileWith(python *pysource.Analyzer, tenant string) func(context.Context, []string, [][]byte) (string, [][]byte, error) {
	return func(ctx context.Context, paths []string, texts [][]byte) (string, [][]byte, error) {
		c, err := python.Compile(ctx, tenant, paths, texts)
		if err != nil {
			return "", nil, err
		}
		return c.Tag, c.Files, nil
	}
}

// DeclaredPackages are the packages that the files of a folder declare. The error, a *skill.Error,
// names the first that cannot be added.
func DeclaredPackages(root *os.Root) ([]packages.Requirement, error) {
	declared, err := preflight.Declarations(root)
	if err != nil {
		return nil, err
	}
	var asked []packages.Requirement
	for _, d := range declared {
		r, err := packages.ParseRequirement(d.Text, packages.Ecosystem(d.Ecosystem))
		if err != nil {
			return nil, &skill.Error{Op: "host.DeclaredPackages", Code: skill.InvalidArgument, Subject: d.File, Message: skill.CleanText(fmt.Sprintf("%s:%d: %s", d.File, d.Line, err), skill.MaxMessage)}
		}
		r.From = d.File
		asked = append(asked, r)
	}
	return asked, nil
}

// SetPackages implements [api.Uploads].
func (u *uploads) SetPackages(ctx context.Context, d catalogue.Decision, w *api.PackageWish) (*skill.PackagesResult, error) {
	h := u.ahead.host
	out := &skill.PackagesResult{Added: []string{}, Removed: []string{}}
	var archive *os.File
	now, err := u.Store.SetPackages(ctx, d, func(tenant, folder string, has bool) (*catalogue.Given, error) {
		if w == nil {
			before, err := h.packages.Of(folder)
			out.Removed = append(out.Removed, before.Names()...)
			return nil, err
		}
		c, err := h.addPackages(ctx, tenant, folder, has, w)
		if err != nil {
			return nil, err
		}
		for i := range c.Added {
			out.Added = append(out.Added, c.Added[i].String())
		}
		for i := range c.Removed {
			out.Removed = append(out.Removed, c.Removed[i].String())
		}
		given := &catalogue.Given{Set: c.Lock.Set}
		if given.Lock, err = c.Lock.Portable(); err != nil || given.Set == "" {
			out.Packages = given.Lock
			return given, err
		}
		out.Packages = given.Lock
		if archive, err = os.CreateTemp(filepath.Join(h.settings.StateDir, "tmp"), "packages-"); err != nil {
			return nil, err
		}
		given.Files = archive
		given.Space, err = h.packages.Pack(archive, c.Lock)
		return given, err
	})
	if archive != nil {
		_ = archive.Close()
		_ = os.Remove(archive.Name()) // a start removes what stays
	}
	if w != nil && w.Optional && errors.Is(err, errNoPackages) {
		out.ID, out.Version, out.Digest = d.ID, d.Version, d.Digest
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.ID, out.Version, out.Digest, out.State = now.ID, now.Version, now.Digest, now.State
	return out, nil
}

var errNoPackages = &skill.Error{Op: "host.SetPackages", Code: skill.InvalidArgument, Subject: "packages", Message: "the version declares and imports no packages that can be added; name them in packages, such as python:requests"}

// addPackages resolves and downloads what a version of a tenant is to have, into this host's
// own packages.
func (h *Host) addPackages(ctx context.Context, tenant, folder string, has bool, w *api.PackageWish) (*packages.Change, error) {
	asked, err := h.askedPackages(ctx, tenant, folder, has, w)
	if err != nil {
		return nil, err
	}
	store := runtimes.New(h.settings.StateDir)
	o, err := PackageOptions(store, h.settings.Python)
	if err != nil {
		return nil, err
	}
	if _, err := store.For(nil, nil); err == nil { // else they are imported from source
		python, err := h.analyzer()
		if err != nil {
			return nil, err
		}
		o.Compile = CompileWith(python, tenant)
	}
	if w.Update {
		return h.packages.Relock(ctx, folder, asked, o)
	}
	return h.packages.Add(ctx, folder, asked, o)
}

// askedPackages are those that a wish names, else those that the files of a version declare, else
// those that its scripts import.
func (h *Host) askedPackages(ctx context.Context, tenant, folder string, has bool, w *api.PackageWish) (asked []packages.Requirement, err error) {
	for _, name := range w.Names {
		r, err := packages.ParseRequirement(name, "")
		if err != nil {
			return nil, err
		}
		asked = append(asked, r)
	}
	if len(asked) > 0 {
		return asked, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if asked, err = DeclaredPackages(root); err != nil || len(asked) > 0 || has {
		return asked, err
	}
	report, err := h.preflight(ctx, folder, tenant)
	if err != nil {
		return nil, err
	}
	for _, n := range report.Needs.Packages {
		if r, err := packages.ParseRequirement(n.Name, packages.Ecosystem(n.Ecosystem)); err == nil && !n.Native { // other names are of no package
			r.From = n.File
			asked = append(asked, r)
		}
	}
	if len(asked) == 0 {
		return nil, errNoPackages
	}
	return asked, nil
}

// Bill gives the bill of materials of a version that the caller finds: its packages.
func (u *uploads) Bill(ctx context.Context, p skill.Principal, id skill.ID, version string) (json.RawMessage, error) {
	lock := &packages.Lock{}
	if text, err := u.PackagesOf(ctx, p.Tenant, id, version); err != nil {
		return nil, err
	} else if text != nil {
		if lock, err = packages.ReadPortable(text); err != nil {
			return nil, &skill.Error{Op: "host.Bill", Code: skill.Internal, Subject: string(id), Message: "cannot read the lock of the packages of this version", Err: err}
		}
	}
	var b bytes.Buffer
	err := lock.WriteBill(&b, string(id), version)
	return b.Bytes(), err
}

// CodePackages implements [dispatch.Scripts].
func (s scripts) CodePackages(ctx context.Context, p skill.Principal, language string, names, agents []string) (set string, requires []string, err error) {
	if set, requires, err = s.packages.Use(codeDir(s.settings)); err != nil {
		return "", nil, err
	}
	wrong := func(code skill.Code, format string, args ...any) (string, []string, error) {
		return "", nil, &skill.Error{Op: "host.CodePackages", Code: code, Subject: "packages", Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage)}
	}
	from := ""
	for _, name := range agents {
		f, err := s.agents.Folder(ctx, p, name)
		if err != nil {
			return "", nil, err
		}
		uploaded, err := s.upload(f)
		if err != nil {
			return "", nil, err
		}
		own, needs, err := s.packagesOf(f, uploaded)
		if err != nil {
			return "", nil, err
		}
		requires = append(requires, needs...)
		switch {
		case own == "":
		case from != "" && own != set:
			return wrong(skill.InvalidArgument, "the Agent Skills %s and %s have different packages; name one of them", from, name)
		default:
			set, from = own, name
		}
	}
	kind := packages.Python
	if language == "javascript" || language == "typescript" {
		kind = packages.NPM
	}
	for _, name := range names {
		r, err := packages.ParseRequirement(name, kind)
		if err != nil {
			return "", nil, err
		}
		switch {
		case r.Spec != "":
			return wrong(skill.InvalidArgument, "omit the version of %s: the operator chooses it", name)
		case packages.Has(set, r):
		case r.Ecosystem == packages.Python && runtimes.CheckRequires([]string{r.Name}) == nil:
			requires = append(requires, r.Name)
		default:
			return wrong(skill.NotFound, "code has no package %s; the operator can add it: openskill packages add run_code %s:%s", r.Name, r.Ecosystem, r.Name)
		}
	}
	return set, requires, nil
}
