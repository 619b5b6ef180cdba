package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
	"openskill/host/internal/cache"
	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// sweeping is how often files of deleted versions are looked for.
const sweeping = 30 * time.Second

// UploadsDir is the folder of copies of uploaded skills in a state folder. The database has
// the skills.
func UploadsDir(stateDir string) string { return filepath.Join(stateDir, "uploads") }

// oldUploads is where releases before schema 14 kept the uploads of a host with SQLite.
const oldUploads = "skills"

// uploadGrace is how long the files of a deleted version stay, for calls that run.
const uploadGrace = 10 * time.Minute

// uploads joins admission and the store of versions into what edges may ask.
type uploads struct {
	store     *catalogue.Store
	admission *admission.Admission
	watch     *catalogue.Watch
	log       *slog.Logger
	ahead     *ahead
	pulls     atomic.Pointer[pulls] // nil: nothing may be pulled
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
		Registry: read, Checker: moduleChecker{h}, MaxArchive: s.MaxUpload(),
		Grant: func(k *manifest.Skill) skill.Permissions { return Granted(h.live.Load(), k) },
	})
	if err != nil {
		return err
	}
	o := catalogue.Options{
		DB: h.kept.db, Dir: UploadsDir(s.StateDir), Admission: admission, Reserved: h.skills.Knows, Log: h.log, Now: h.kept.log.DatabaseTime,
		Read:   func(folder string) (*manifest.Skill, []manifest.Problem) { return manifest.ReadFolder(folder, read) },
		Skills: s.UploadSkills, Versions: s.UploadVersions, Bytes: s.UploadBytes(), Grace: uploadGrace, Alone: h.alone,
		RecordQuarantine: recordQuarantine(h.kept.db, h.log),
	}
	if h.kept.db.Kind() == store.SQLite {
		o.Old = filepath.Join(s.StateDir, oldUploads)
	}
	pulls, err := openPulls(s, admission)
	if err != nil {
		return err
	}
	versions, err := catalogue.Open(o)
	if err != nil {
		return err
	}
	u := &uploads{
		store: versions, admission: admission, log: h.log, metrics: h.metrics, ahead: newAhead(h, state{root: s.StateDir}), warm: h.warmUpload, enabled: make(chan *manifest.Skill, 16),
		watch: catalogue.NewWatch(catalogue.WatchOptions{Quarantine: versions.Quarantine}),
	}
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
		c.uploads = h.uploads.store
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
	got := skill.Permissions{Data: err == nil && g.Data != "", Scratch: g.Scratch, HTTP: g.HTTP}
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
		u.store.Sweep()
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
	return u.store.Close()
}

// may refuses who has none of the scopes.
func may(p skill.Principal, scopes ...string) error {
	switch {
	case p.ID == "":
		return &skill.Error{Op: "host.uploads", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case !slices.ContainsFunc(scopes, p.May):
		return &skill.Error{Op: "host.uploads", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope " + strings.Join(scopes, " or ")}
	}
	return nil
}

// Begin makes a place for an upload.
func (u *uploads) Begin(p skill.Principal) (api.Upload, error) {
	if err := may(p, skill.ScopeUpload); err != nil {
		return nil, err
	}
	place, err := u.store.Begin(p.Tenant)
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
func (o *oneUpload) Admit(ctx context.Context, parts api.Parts, dryRun bool) (*skill.UploadResult, error) {
	result, err := o.admit(ctx, parts, dryRun)
	o.of.metrics.Upload(dryRun, err)
	return result, err
}

func (o *oneUpload) admit(ctx context.Context, parts api.Parts, dryRun bool) (*skill.UploadResult, error) {
	admitted, err := o.of.admission.Admit(ctx, admission.Source{Archive: parts.Archive, Module: parts.Module, Manifest: parts.Manifest, Owner: o.by.Tenant}, o.Staging())
	if err == nil {
		err = o.holds(admitted)
	}
	if err != nil {
		return nil, err
	}
	admitted.Report.Preflight = o.of.ahead.look(ctx, admitted.Folder, o.by.Tenant)
	report, err := json.Marshal(admitted.Report)
	if err != nil {
		return nil, fmt.Errorf("host.Admit: the report: %w", err)
	}
	d := &admitted.Skill.Descriptor
	result := &skill.UploadResult{ID: d.ID, Version: d.Version, Digest: admitted.Digest, State: skill.StateDryRun, Report: report}
	if dryRun {
		return result, withReport(o.Check(admitted), admitted.Report)
	}
	var now skill.VersionState
	change := records.Change{Tenant: o.by.Tenant, Action: "skill.upload", Subject: string(d.ID), Details: map[string]string{"version": d.Version, "digest": admitted.Digest, "origin": o.origin()}}
	err = records.Around(ctx, records.NewStore(o.of.ahead.host.kept.db), o.by, change, func() error {
		var err error
		now, err = o.Publish(ctx, admitted, o.by.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	result.State = now.State
	o.of.log.LogAttrs(ctx, slog.LevelInfo, "a version was uploaded", slog.String("tenant", skill.CleanText(o.by.Tenant, 128)), slog.String("principal", skill.CleanText(o.by.ID, 128)),
		slog.String("skill_id", string(d.ID)), slog.String("version", d.Version), slog.String("digest", admitted.Digest), slog.String("origin", o.origin()))
	return result, nil
}

// Report makes the admission report of a version that the caller finds.
func (u *uploads) Report(ctx context.Context, p skill.Principal, id skill.ID, version string) (*skill.UploadResult, error) {
	none := func(why string) error {
		return &skill.Error{Op: "host.Report", Code: skill.NotFound, Subject: string(id), Message: "no report for this version: " + why}
	}
	if u.ahead.host.skills.Knows(id) {
		return nil, none("it is one of the operator's skills and was not uploaded")
	}
	s, err := u.store.Get(p.Tenant, id, version)
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
	if made.Verdict == admission.Accepted {
		made.Preflight = u.ahead.look(ctx, s.Folder, s.Owner)
	}
	report, err := json.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("host.Report: %w", err)
	}
	return &skill.UploadResult{ID: d.ID, Version: d.Version, Digest: d.Digest, State: d.State, Report: report}, nil
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

// decided authorizes a decision, makes it and writes it down.
func (u *uploads) decided(p skill.Principal, scope, what string, w api.Which, act func(owner string, by catalogue.By) (skill.VersionState, error)) (skill.VersionState, error) {
	if err := may(p, slices.Compact([]string{scope, skill.ScopeAdmin})...); err != nil { // the operator decides about every upload
		return skill.VersionState{}, err
	}
	by := catalogue.By{ID: p.ID, Operator: p.May(skill.ScopeAdmin), Reason: w.Reason, Digest: w.Digest}
	owner, err := u.store.Owner(p.Tenant, w.Tenant, w.ID, by.Operator)
	if err == nil && owner != p.Tenant {
		err = named(owner, what, w)
	}
	if err != nil {
		return skill.VersionState{}, err
	}
	// What is on record is what is done, and nothing else: a change in between is a conflict.
	version, digest, err := u.store.Meant(owner, w.ID, what, w.Version)
	if err != nil {
		return skill.VersionState{}, err
	}
	by.Digest = cmp.Or(w.Digest, digest)
	var now skill.VersionState
	change := records.Change{Tenant: owner, Action: "skill." + what, Subject: string(w.ID), Details: map[string]string{"version": version, "digest": skill.CleanText(by.Digest, 71), "reason": skill.CleanText(w.Reason, 400)}}
	err = records.Around(u.ctx, records.NewStore(u.ahead.host.kept.db), p, change, func() error {
		var err error
		now, err = act(owner, by)
		return err
	})
	if err == nil {
		u.log.Info("a decision about an upload", slog.String("decision", what), slog.String("principal", skill.CleanText(p.ID, 128)),
			slog.String("tenant", skill.CleanText(owner, 128)), slog.String("skill_id", string(w.ID)), slog.String("version", now.Version), slog.String("reason", skill.CleanText(w.Reason, 400)))
	}
	return now, err
}

// named refuses a decision of the operator about another tenant's skill that says neither whose it is
// nor which files: the tenant that had the id when the operator looked may have deleted it, and
// another one uploaded it since. To enable or approve is to trust files, so it takes their
// version too, which is never used again, or their digest.
func named(owner, what string, w api.Which) error {
	if w.Digest != "" || w.Tenant != "" && (w.Version != "" || what != catalogue.ToEnable && what != catalogue.ToApprove) {
		return nil
	}
	return &skill.Error{
		Op: "host.decided", Code: skill.InvalidArgument, Subject: string(w.ID), Details: map[string]any{"tenant": owner},
		Message: fmt.Sprintf("the skill %s belongs to the tenant %s: set digest, or tenant and version", w.ID, skill.CleanText(owner, 128)),
	}
}

// Enable lets a version be called.
func (u *uploads) Enable(p skill.Principal, w api.Which) (skill.VersionState, error) {
	return u.decided(p, skill.ScopeUpload, catalogue.ToEnable, w, func(owner string, by catalogue.By) (skill.VersionState, error) {
		now, err := u.store.Enable(owner, w.ID, w.Version, by)
		if err == nil {
			u.getReady(owner, now)
		}
		return now, err
	})
}

// getReady asks for what the first call of a version needs to be loaded. It is only
// sooner that way: where too much is asked for, the call itself asks again.
func (u *uploads) getReady(owner string, v skill.VersionState) {
	if s, err := u.store.Get(owner, v.ID, v.Version); err == nil {
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
	h.done(ctx, "warmed up", string(s.Primary.Kind), func() error { return h.compiled(ctx, s) })
}

// Disable stops a version, or all, from being called.
func (u *uploads) Disable(p skill.Principal, w api.Which) (skill.VersionState, error) {
	return u.decided(p, skill.ScopeUpload, catalogue.ToDisable, w, func(owner string, by catalogue.By) (skill.VersionState, error) {
		return u.store.Disable(owner, w.ID, w.Version, by)
	})
}

// Approve shows a version to all tenants.
func (u *uploads) Approve(p skill.Principal, w api.Which) (skill.VersionState, error) {
	return u.decided(p, skill.ScopeAdmin, catalogue.ToApprove, w, func(owner string, by catalogue.By) (skill.VersionState, error) {
		return u.store.Approve(owner, w.ID, w.Version, by)
	})
}

// Rollback goes back to the version before.
func (u *uploads) Rollback(p skill.Principal, w api.Which) (skill.VersionState, error) {
	return u.decided(p, skill.ScopeUpload, catalogue.ToRollback, w, func(owner string, by catalogue.By) (skill.VersionState, error) {
		return u.store.Rollback(owner, w.ID, by)
	})
}

// Delete takes a version away.
func (u *uploads) Delete(p skill.Principal, w api.Which) (skill.VersionState, error) {
	return u.decided(p, skill.ScopeUpload, catalogue.ToDelete, w, func(owner string, by catalogue.By) (skill.VersionState, error) {
		return u.store.Delete(owner, w.ID, w.Version, by)
	})
}

// finder is what a caller finds: the operator's skills, which are everybody's,
// and what its tenant finds of the uploads. It is what the door asks.
type finder struct {
	own      *catalogue.Definitions
	uploads  *catalogue.Store // nil: none
	settings *atomic.Pointer[config.Settings]
	lists    *cache.Cache
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
	all, err := c.list(p.Tenant)
	if err != nil {
		return nil, "", err
	}
	from, found := slices.BinarySearchFunc(all, skill.ID(cursor), func(d skill.Descriptor, id skill.ID) int { return cmp.Compare(d.ID, id) })
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
