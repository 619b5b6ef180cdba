package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"openskill/host/admission"
	"openskill/host/admission/share"
	"openskill/host/api"
	"openskill/host/app/config"
	"openskill/host/app/metrics"
	"openskill/host/catalogue"
	"openskill/host/dispatch"
	"openskill/host/dispatch/grants"
	"openskill/host/internal/gate"
	"openskill/host/internal/table"
	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// sweeping is how often files of deleted versions are looked for.
const sweeping = 30 * time.Second

// uploadsDir is the folder of copies of uploaded skills in a state folder. The database has
// the skills.
func uploadsDir(stateDir string) string { return filepath.Join(stateDir, "uploads") }

// oldUploads is where releases before schema 14 kept the uploads of a host with SQLite.
const oldUploads = "skills"

// uploadGrace is how long the files of a deleted version stay, for calls that run.
const uploadGrace = 10 * time.Minute

// uploads joins admission and the store of versions into what edges may ask.
type uploads struct {
	*catalogue.Store
	admission *admission.Admission
	watch     *catalogue.Watch
	ahead     *ahead
	pulls     atomic.Pointer[pulls] // nil: nothing may be pulled
	proposals *gate.Gate
	metrics   *metrics.Metrics

	warm    func(ctx context.Context, s *manifest.Skill) // gets ready what an enabled skill needs
	enabled chan *manifest.Skill

	ctx   context.Context //nolint:containedctx // of what goes on in the background, until close
	stop  context.CancelFunc
	ended sync.WaitGroup
}

var _ api.Uploads = (*uploads)(nil)

// openUploads opens the store of the state folder. The operator's skills are read
// already: uploads may not take their ids.
func (h *Host) openUploads() error {
	s := h.settings
	read := manifest.Options{Defaults: s.Defaults(), Caps: s.Caps(), Packages: runtimes.CheckRequires, Schemas: h.schemas}
	admission, err := admission.New(admission.Options{
		Registry: read, Checker: moduleChecker{h}, MaxArchive: s.MaxUpload(), Agent: ReadUpload(read),
		Grant: func(k *manifest.Skill) skill.Permissions { return Granted(h.live.Load(), k) },
	})
	if err != nil {
		return err
	}
	o := catalogue.Options{
		DB: h.kept.db, Dir: uploadsDir(s.StateDir), Admission: admission, Reserved: h.skills.Has, Log: h.log, Now: h.kept.log.DatabaseTime,
		Read:   ReadUpload(read),
		Skills: s.UploadSkills, Versions: s.UploadVersions, Packages: h.packages, Bytes: s.UploadBytes(), Grace: uploadGrace, Alone: h.alone,
	}
	if h.kept.db.Kind() == store.SQLite {
		o.Old = filepath.Join(s.StateDir, oldUploads)
	}
	pulls, err := openPulls(s, admission)
	if err != nil {
		return err
	}
	u := &uploads{admission: admission, proposals: gate.New(gate.Options{Places: s.Concurrency, Queue: s.Concurrency, Alone: h.alone}), metrics: h.metrics, ahead: newAhead(h, state{root: s.StateDir}), warm: h.warmUpload, enabled: make(chan *manifest.Skill, 16)}
	o.Enabled = u.getReady
	if u.Store, err = catalogue.Open(o); err != nil {
		return err
	}
	u.watch = catalogue.NewWatch(catalogue.WatchOptions{Quarantine: u.Quarantine})
	u.pulls.Store(pulls)
	u.ctx, u.stop = context.WithCancel(context.Background())
	u.ended.Go(u.sweep)
	u.ended.Go(u.warmEnabled)
	h.uploads = u
	h.owns(u.close)
	return nil
}

// finds is what the door and the catalogue look skills up in.
func (h *Host) finds() finder {
	c := finder{own: h.skills, settings: &h.live, lists: h.lists}
	if h.uploads != nil {
		c.uploads = h.uploads.Store
	}
	return c
}

// observer is told how runs of uploads end; nil where there are none.
func (h *Host) observer() dispatch.Observer {
	if h.uploads == nil {
		return nil
	}
	return h.uploads.watch
}

// Granted gives what an upload gets of what it asks, by the settings of a host.
func Granted(settings *config.Settings, s *manifest.Skill) skill.Permissions {
	return granted(settings, s, skill.Community)
}

// granted is what the door grants a skill of this trust. A folder of data that cannot be
// used is not granted: the call says what is wrong with it.
func granted(settings *config.Settings, s *manifest.Skill, trust skill.Trust) skill.Permissions {
	g, err := settings.Allowed().Grants(settings.DataRoot, grants.Skill{ID: s.Descriptor.ID, Trust: trust, Owner: s.Owner}, s.Permissions)
	got := skill.Permissions{Data: err == nil && g.Data != "", Scratch: g.Scratch, HTTP: g.HTTP, Skills: g.Skills}
	for _, v := range g.Env {
		name, _, _ := strings.Cut(v, "=") // never the value
		got.Env = append(got.Env, name)
	}
	return got
}

func (u *uploads) sweep() {
	tick := time.NewTicker(sweeping)
	defer tick.Stop()
	for {
		u.Sweep()
		select {
		case <-u.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (u *uploads) close() error {
	u.stop()
	u.ended.Wait()
	u.pulls.Load().close()
	return u.Close()
}

// Begin makes a place for an upload.
func (u *uploads) Begin(p skill.Principal) (api.Upload, error) {
	place, err := u.Store.Begin(p)
	if err != nil {
		return nil, err
	}
	return &oneUpload{Upload: place, of: u, by: p}, nil
}

// oneUpload is one upload on its way through admission.
type oneUpload struct {
	*catalogue.Upload
	of     *uploads
	by     skill.Principal
	pulled *share.Verified // nil: it came in
}

// Admit checks what came in and keeps it.
func (o *oneUpload) Admit(ctx context.Context, src admission.Source, dryRun bool) (*skill.UploadResult, error) {
	result, err := o.admit(ctx, src, dryRun)
	o.of.metrics.Upload(dryRun, err)
	return result, err
}

func (o *oneUpload) admit(ctx context.Context, src admission.Source, dryRun bool) (*skill.UploadResult, error) {
	src.Owner = o.by.Tenant
	admitted, err := o.of.admission.Admit(ctx, src, o.Staging())
	if err == nil {
		err = o.holds(admitted)
	}
	if err == nil {
		err = o.of.ahead.host.freeName(ctx, o.by, admitted.Skill)
	}
	if err != nil {
		return nil, err
	}
	admitted.Report.Preflight = o.of.ahead.look(ctx, admitted.Folder, o.by.Tenant, false)
	report, err := json.Marshal(admitted.Report)
	if err != nil {
		return nil, fmt.Errorf("host.Admit: the report: %w", err)
	}
	d := &admitted.Skill.Descriptor
	result := &skill.UploadResult{ID: d.ID, Version: d.Version, Digest: admitted.Digest, State: skill.StateDryRun, Report: report}
	if dryRun {
		return result, withReport(o.Check(admitted), admitted.Report)
	}
	now, err := o.Publish(ctx, admitted, o.origin())
	if err != nil {
		return nil, err
	}
	result.State = now.State
	return result, nil
}

// Report makes the admission report of a version that the caller finds.
func (u *uploads) Report(ctx context.Context, p skill.Principal, id skill.ID, version string) (*skill.UploadResult, error) {
	none := func(why string) error {
		return &skill.Error{Op: "host.Report", Code: skill.NotFound, Subject: string(id), Message: "no report for this version: " + why}
	}
	if u.ahead.host.skills.Has(id) {
		return nil, none("it is one of the operator's skills and was not uploaded")
	}
	s, err := u.Get(p.Tenant, id, version)
	if err != nil {
		return nil, err
	}
	d := &s.Descriptor
	if s.Folder == "" { // quarantined, because its files are not those that were admitted
		return nil, none(d.Reason)
	}
	made, err := u.admission.Again(ctx, s)
	if err != nil {
		return nil, err
	}
	if made.Packages, err = u.PackagesOf(ctx, p.Tenant, id, d.Version); err != nil {
		return nil, err
	}
	if made.Verdict == admission.Accepted {
		made.Preflight = u.ahead.look(ctx, s.Folder, s.Owner, made.Packages != nil)
	}
	report, err := json.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("host.Report: %w", err)
	}
	return &skill.UploadResult{ID: d.ID, Version: d.Version, Digest: d.Digest, State: d.State, Report: report}, nil
}

// maxShown bounds a file of a skill that is read over HTTP, in bytes.
const maxShown = 1 << 20

// own returns a version of the caller's tenant whose files can be read.
func (u *uploads) own(p skill.Principal, id skill.ID, version string) (*manifest.Skill, error) {
	s, err := u.Get(p.Tenant, id, version)
	if err == nil && (s.Owner != p.Tenant || s.Folder == "") {
		err = &skill.Error{Op: "host.File", Code: skill.NotFound, Subject: string(id), Message: "the files of this version cannot be read: it belongs to another tenant, or is quarantined"}
	}
	return s, err
}

// File returns a file of a version of the caller's tenant.
func (u *uploads) File(_ context.Context, p skill.Principal, id skill.ID, version, path string) ([]byte, error) {
	s, err := u.own(p, id, version)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.Folder)
	if err != nil {
		return nil, fmt.Errorf("host.File: %w", err)
	}
	defer root.Close()
	f, err := root.Open(filepath.FromSlash(path))
	if err == nil {
		defer f.Close()
		var info os.FileInfo
		if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
			err = os.ErrNotExist
		}
	}
	if err != nil {
		return nil, &skill.Error{Op: "host.File", Code: skill.NotFound, Subject: skill.CleanText(path, 80), Message: "the version has no such file; its report lists all", Err: err}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxShown+1))
	if err == nil && len(data) > maxShown {
		err = &skill.Error{Op: "host.File", Code: skill.PayloadTooLarge, Subject: skill.CleanText(path, 80), Message: fmt.Sprintf("the file is larger than %d bytes", maxShown)}
	}
	return data, err
}

// withReport adds the admission report to an error about an upload that was admitted:
// whoever made a dry run wanted to see it.
func withReport(err error, report *admission.Report) error {
	var e *skill.Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	c.Details["report"] = report
	return &c
}

// getReady asks for what the first call of a version needs to be loaded. It is only
// sooner that way: where too much is asked for, the call itself asks again.
func (u *uploads) getReady(owner string, id skill.ID, version string) {
	if s, err := u.Get(owner, id, version); err == nil {
		select {
		case u.enabled <- s:
		default:
		}
	}
}

// warmEnabled loads what was asked for, one after the other.
func (u *uploads) warmEnabled() {
	for {
		select {
		case <-u.ctx.Done():
			return
		case s := <-u.enabled:
			ctx, stop := context.WithTimeout(u.ctx, preparing)
			u.warm(ctx, s)
			stop()
		}
	}
}

// warmUpload has what an upload runs on compiled; its own code runs with its calls only.
func (h *Host) warmUpload(ctx context.Context, s *manifest.Skill) {
	if s.Descriptor.Runner == skill.Agentic {
		return
	}
	h.done(ctx, "warmed up", string(s.Primary.Kind), func() error { return h.compiled(ctx, s) })
}

// finder is what a caller finds: the operator's skills, which are everybody's,
// and what its tenant finds of the uploads. It is what the door asks.
type finder struct {
	own      *catalogue.Definitions
	uploads  *catalogue.Store // nil: none
	settings *atomic.Pointer[config.Settings]
	lists    *table.Cache
}

// Get finds a skill for a caller of a tenant.
func (c finder) Get(tenant string, id skill.ID, version string) (*manifest.Skill, error) {
	if own := c.own.Now(); c.uploads == nil || own.Has(id) {
		return own.Get(id, version)
	}
	return c.uploads.Get(tenant, id, version)
}

// View is what the host's skills look like from outside, to each caller. Their
// permissions are those that calls are granted.
type View struct{ all finder }

func (c View) shown(s *manifest.Skill) skill.Descriptor {
	d := s.Descriptor
	d.Permissions = granted(c.all.settings.Load(), s, d.Trust)
	return d
}

var _ api.Catalogue = View{}

// Get gives one version of a skill, the enabled one for "".
func (c View) Get(p skill.Principal, id skill.ID, version string) (skill.Descriptor, error) {
	s, err := c.all.Get(p.Tenant, id, version)
	if err != nil {
		return skill.Descriptor{}, err
	}
	return c.shown(s), nil
}

// Versions gives every version of a skill that the caller finds.
func (c View) Versions(p skill.Principal, id skill.ID) ([]skill.Descriptor, error) {
	if own := c.all.own.Now(); c.all.uploads == nil || own.Has(id) {
		s, err := own.Get(id, "")
		if err != nil {
			return nil, err
		}
		return []skill.Descriptor{c.shown(s)}, nil
	}
	found, err := c.all.uploads.Versions(p.Tenant, id)
	list := make([]skill.Descriptor, len(found))
	for i, s := range found {
		list[i] = c.shown(s)
	}
	return list, err
}

// List gives a page in the order of ids; see [manifest.Registry.List].
func (c View) List(p skill.Principal, cursor string, limit int) ([]skill.Descriptor, string, error) {
	if _, _, err := c.all.own.Now().List(cursor, limit); err != nil {
		return nil, "", err // what is wrong with cursor or limit
	}
	if limit == 0 {
		limit = manifest.DefaultPage
	}
	all, err := c.seen(p)
	if err != nil {
		return nil, "", err
	}
	from, found := slices.BinarySearchFunc(all, skill.ID(cursor), byID)
	if found {
		from++
	}
	to := min(from+limit, len(all))
	page := slices.Clone(all[from:to])
	if to == len(all) {
		return page, "", nil
	}
	return page, string(all[to-1].ID), nil
}

// revision is that of a tenant's lists now.
func (c View) revision(tenant string) revision {
	at := revision{own: c.all.own.Now(), settings: c.all.settings.Load()}
	if c.all.uploads != nil {
		at.uploads = c.all.uploads.Revision(tenant)
	}
	return at
}

// seen returns the skills visible to p: list, without run_code if p may not call it.
func (c View) seen(p skill.Principal) ([]skill.Descriptor, error) {
	all, err := c.list(p.Tenant)
	if i, found := slices.BinarySearchFunc(all, skill.RunCode, byID); found && !p.MayInvoke(skill.RunCode) {
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
	return all, err
}

func byID(d skill.Descriptor, id skill.ID) int { return cmp.Compare(d.ID, id) }

// list gives the current version of every skill that a tenant finds, in the order of ids. It
// is not to be changed.
func (c View) list(tenant string) ([]skill.Descriptor, error) {
	at := c.revision(tenant) // before anything is read
	const key = "skills"
	if v, ok := c.all.lists.Get(tenant, key, at); ok {
		all, _ := v.([]skill.Descriptor) // of this kind of key
		return all, nil
	}
	var all []skill.Descriptor
	for _, id := range at.own.IDs() {
		if s, err := at.own.Get(id, ""); err == nil {
			all = append(all, c.shown(s))
		}
	}
	if c.all.uploads != nil {
		uploaded, err := c.all.uploads.List(tenant)
		if err != nil {
			return nil, err
		}
		for _, s := range uploaded {
			if !at.own.Has(s.Descriptor.ID) {
				all = append(all, c.shown(s))
			}
		}
	}
	slices.SortFunc(all, func(a, b skill.Descriptor) int { return cmp.Compare(a.ID, b.ID) })
	c.all.lists.Put(tenant, key, at, all, len(all)*1024) // schemas are the store's own
	return all, nil
}
