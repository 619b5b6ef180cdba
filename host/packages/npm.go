package packages

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// npmLock is a package-lock.json, as far as it is read.
type npmLock struct {
	Packages map[string]*npmEntry `json:"packages"`
}

type npmEntry struct {
	Name         string            `json:"name"` // where it is not that of the folder
	Version      string            `json:"version"`
	Resolved     string            `json:"resolved"`
	Integrity    string            `json:"integrity"`
	Link         bool              `json:"link"`
	Bundled      bool              `json:"inBundle"`
	Optional     bool              `json:"optional"`
	Scripts      bool              `json:"hasInstallScript"`
	OS           []string          `json:"os"`
	CPU          []string          `json:"cpu"`
	Dependencies map[string]string `json:"dependencies"`
	Optionals    map[string]string `json:"optionalDependencies"`
	Peers        map[string]string `json:"peerDependencies"`
}

// npm resolves requirements and downloads the tarballs. No script of a package is run, and no
// repository cloned.
func (o *Options) npm(ctx context.Context, work string, asked []Requirement, pinned []Package) ([]downloaded, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return nil, noTool("npm")
	}
	dir, got := filepath.Join(work, "npm"), filepath.Join(work, "tarballs")
	for _, d := range []string{dir, got} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err := o.project(dir, asked, pinned); err != nil {
		return nil, err
	}
	args := append([]string{"install", "--package-lock-only", "--omit=dev", "--global=false", "--workspaces=false"}, o.npmFlags()...)
	if _, err := tool(ctx, dir, nil, "npm", args...); err != nil {
		return nil, o.npmFailed(ctx, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock npmLock
	if err := json.Unmarshal(b, &lock); err != nil {
		return nil, err
	}
	all, err := lock.packages()
	if err != nil {
		return nil, err
	}
	return all, o.tarballs(ctx, dir, got, all, &lock)
}

func (o *Options) npmFlags() []string {
	flags := []string{"--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--git=" + filepath.Join(os.DevNull, "git")}
	if o.From != "" {
		return append(flags, "--offline")
	}
	if o.MinAge > 0 {
		flags = append(flags, "--before="+o.clock().Add(-o.MinAge).UTC().Format(time.RFC3339))
	}
	return flags
}

// project writes the package.json that asks for the packages.
func (o *Options) project(dir string, asked []Requirement, pinned []Package) error {
	deps := map[string]string{}
	for _, r := range asked {
		deps[r.Name] = r.Spec
		if r.Spec == "" {
			deps[r.Name] = "*"
		}
		for _, p := range pinned {
			if p.At == "node_modules/"+r.Name {
				deps[r.Name] = p.Version
			}
		}
	}
	project := map[string]any{"name": "skill", "version": "1.0.0", "private": true, "dependencies": deps}
	if o.From != "" {
		overrides, err := tarballsIn(o.From)
		if err != nil {
			return err
		}
		for name := range deps {
			if file := overrides[name]; file != "" {
				deps[name] = file
				delete(overrides, name)
			}
		}
		project["overrides"] = overrides
	}
	b, err := json.Marshal(project)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "package.json"), b, 0o600)
}

// tarballsIn gives the tarballs of a folder, as npm packs them: NAME-VERSION.tgz, where the
// name of scope-name is also that of @scope/name.
func tarballsIn(folder string) (map[string]string, error) {
	files, err := fs.Glob(os.DirFS(folder), "*.tgz")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, file := range files {
		file = filepath.Join(folder, file)
		name, err := nameInTarball(file)
		if err != nil {
			return nil, err
		}
		all[name] = "file:" + file
	}
	return all, nil
}

func (o *Options) npmFailed(ctx context.Context, err error) error {
	var t *toolError
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.As(err, &t) {
		return err
	}
	what := last(t.text, 300)
	switch {
	case strings.Contains(t.text, "ETARGET") && o.MinAge > 0:
		what = "no version fits that was released more than " + ageText(o.MinAge) + " ago, see --min-age: " + what
	case strings.Contains(t.text, "E404"):
		what = "package not found in the index: " + what
	}
	return &skill.Error{Op: "packages.Add", Code: skill.ToolInvocationError, Message: skill.CleanText("npm could not get the packages: "+what, skill.MaxMessage), Err: err}
}

// packages are those of a lock that the sandbox gets, in order of place.
func (l *npmLock) packages() ([]downloaded, error) {
	var all []downloaded
	for at, e := range l.Packages {
		if at == "" || e.Bundled {
			continue
		}
		i := strings.LastIndex(at, "node_modules/")
		if !strings.HasPrefix(at, "node_modules/") || !fs.ValidPath(at) || e.Link {
			return nil, &skill.Error{Op: "packages.Add", Code: skill.InvalidArgument, Message: "npm gave a package that is not of the index: " + skill.CleanText(at, 100)}
		}
		d := downloaded{Package: Package{Ecosystem: NPM, Name: e.Name, Version: e.Version, At: at}}
		if d.Name == "" {
			d.Name = at[i+len("node_modules/"):]
		}
		if e.Optional && (len(e.OS) > 0 || len(e.CPU) > 0 || e.Scripts) {
			continue // compiled, of one system
		}
		if what := l.compiled(at, e); what != "" {
			return nil, native(&d.Package, what)
		}
		if strings.HasPrefix(e.Resolved, "git") || e.Integrity == "" {
			return nil, refuse(&d.Package, "comes from an address that a package names, and not from the index; name another version")
		}
		for _, names := range []map[string]string{e.Dependencies, e.Optionals, e.Peers} {
			for name := range names {
				d.Needs = append(d.Needs, name)
			}
		}
		slices.Sort(d.Needs)
		if d.Needs = slices.Compact(d.Needs); e.Scripts {
			d.Notes = []string{"its install script is not run"}
		}
		all = append(all, d)
	}
	if len(all) > maxPackages {
		return nil, tooMany()
	}
	slices.SortFunc(all, func(a, b downloaded) int { return strings.Compare(a.At, b.At) })
	return all, nil
}

// compiled says why a package needs native code: it is for some processors alone, or takes
// what it does from optional packages that are for Linux.
func (l *npmLock) compiled(at string, e *npmEntry) string {
	if len(e.CPU) > 0 {
		return "cpu: " + strings.Join(e.CPU, ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Optionals)) {
		for dir := at; ; dir = path.Dir(dir) {
			other := l.Packages[path.Join(dir, "node_modules", name)]
			if other != nil && len(other.CPU) > 0 && (len(other.OS) == 0 || slices.Contains(other.OS, "linux")) {
				return name
			}
			if dir == "." || dir == "/" {
				break
			}
		}
	}
	return ""
}

// tarballs downloads those of packages, and compares them with the lock.
func (o *Options) tarballs(ctx context.Context, dir, into string, all []downloaded, lock *npmLock) error {
	if o.From != "" {
		for i := range all {
			d := &all[i]
			name, is := strings.CutPrefix(lock.Packages[d.At].Resolved, "file:")
			if !is {
				return refuse(&d.Package, "is not in the folder of --from")
			}
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			d.file = filepath.Join(into, fmt.Sprintf("%d.tgz", i))
			if err := copyFile(name, d.file, maxArchive+1); err != nil {
				return err
			}
			if err := integrity(d, lock.Packages[d.At].Integrity); err != nil {
				return err
			}
		}
		return nil
	}
	var specs []string
	for i := range all {
		specs = append(specs, all[i].Name+"@"+all[i].Version)
	}
	slices.Sort(specs)
	specs = slices.Compact(specs)
	files := map[string]string{}
	for part := range slices.Chunk(specs, 50) {
		args := append([]string{"pack", "--json", "--pack-destination", into}, o.npmFlags()...)
		out, err := tool(ctx, dir, nil, "npm", append(args, part...)...)
		if err != nil {
			return o.npmFailed(ctx, err)
		}
		var list []struct {
			ID       string `json:"id"`
			Filename string `json:"filename"`
		}
		if err := json.Unmarshal(out, &list); err != nil {
			return err
		}
		for _, p := range list {
			files[p.ID] = p.Filename
		}
	}
	for i := range all {
		d := &all[i]
		name := files[d.Name+"@"+d.Version]
		if !filepath.IsLocal(name) {
			return refuse(&d.Package, "was not downloaded by npm")
		}
		d.file = filepath.Join(into, name)
		if _, err := os.Stat(d.file); err != nil { // @scope/name-1.0.0.tgz, as older versions of npm say
			d.file = filepath.Join(into, strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-"))
		}
		if err := integrity(d, lock.Packages[d.At].Integrity); err != nil {
			return err
		}
	}
	return nil
}

// integrity compares a tarball with what the index has said of it.
func integrity(d *downloaded, want string) error {
	f, err := os.Open(d.file)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	is := "sha512-" + base64.StdEncoding.EncodeToString(h.Sum(nil))
	if !slices.Contains(strings.Fields(want), is) {
		return refuse(&d.Package, "does not have the digest of the index: it has %s, want %s", is, skill.CleanText(want, 200))
	}
	return nil
}
