package apitest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"openskill/host/admission"
	"openskill/host/api"
	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// Uploads takes every upload of who may upload, and remembers it; decisions are
// answered with what was asked. It is safe for concurrent use.
type Uploads struct {
	Dir string // for files
	// Check is called for each upload that came in whole; its error refuses it. nil: none.
	Check func(ctx context.Context, what Uploaded) error
	Skill skill.ID // the one that there is; "": uploaded
	Owner string   // tenant whose it is; "": everybody's
	Quota int64    // bytes that all uploads under way may have together; 0: any number

	mu       sync.Mutex
	seen     []Uploaded
	asks     []catalogue.Decision
	open     int
	reserved int64
}

// Uploaded is what came in. Files are told by size and hash.
type Uploaded struct {
	Tenant                    string
	Archive, Module, Manifest string // "" for none; "<bytes> <hex of SHA-256>"
	DryRun                    bool
	Reference                 string // of what was fetched; "" where it came in
}

// Sum is how a file of these bytes is told in [Uploaded].
func Sum(b []byte) string { return fmt.Sprintf("%d %x", len(b), sha256.Sum256(b)) }

// Seen gives the uploads that came in whole, in order.
func (u *Uploads) Seen() []Uploaded {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]Uploaded(nil), u.seen...)
}

// Decisions gives what was decided, in order.
func (u *Uploads) Decisions() []catalogue.Decision {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]catalogue.Decision(nil), u.asks...)
}

// Open says how many uploads are under way.
func (u *Uploads) Open() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open
}

// Reserved says how many bytes the uploads under way have.
func (u *Uploads) Reserved() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reserved
}

// Begin makes a place.
func (u *Uploads) Begin(p skill.Principal) (api.Upload, error) {
	if err := may(p, skill.ScopeUpload); err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open++
	return &upload{all: u, tenant: p.Tenant}, nil
}

func may(p skill.Principal, scope string) error {
	switch {
	case p.ID == "":
		return &skill.Error{Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case !p.May(scope):
		return &skill.Error{Code: skill.Forbidden, Message: "missing scope " + scope}
	}
	return nil
}

type upload struct {
	all      *Uploads
	from     string // where it was fetched from
	tenant   string
	files    []string
	reserved int64
}

func (o *upload) Reserve(bytes int64) error {
	u := o.all
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reserved -= o.reserved
	o.reserved = 0
	if u.Quota > 0 && u.reserved+bytes > u.Quota {
		return &skill.Error{Code: skill.PayloadTooLarge, Message: "the quota is used up"}
	}
	u.reserved, o.reserved = u.reserved+bytes, bytes
	return nil
}

func (o *upload) File() (*os.File, error) {
	f, err := os.CreateTemp(o.all.Dir, "part-")
	if err == nil {
		o.files = append(o.files, f.Name())
	}
	return f, err
}

// Fetch gives an archive that is its reference, but for one that begins with none/, which is
// not there.
func (o *upload) Fetch(_ context.Context, reference string) (admission.Source, error) {
	if strings.HasPrefix(reference, "none/") {
		return admission.Source{}, &skill.Error{Code: skill.NotFound, Message: "the registry does not have that"}
	}
	f, err := o.File()
	if err == nil {
		_, err = io.WriteString(f, reference)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	o.from = reference
	return admission.Source{Archive: f}, err
}

func (o *upload) Admit(ctx context.Context, parts admission.Source, dryRun bool) (*skill.UploadResult, error) {
	what := Uploaded{Tenant: o.tenant, DryRun: dryRun, Reference: o.from}
	for _, f := range []struct {
		from *os.File
		to   *string
	}{{parts.Archive, &what.Archive}, {parts.Module, &what.Module}} {
		if f.from == nil {
			continue
		}
		h := sha256.New()
		n, err := io.Copy(h, f.from)
		if err != nil {
			return nil, err
		}
		*f.to = fmt.Sprintf("%d %x", n, h.Sum(nil))
	}
	if parts.Manifest != nil {
		what.Manifest = Sum(parts.Manifest)
	}
	if o.all.Check != nil {
		if err := o.all.Check(ctx, what); err != nil {
			return nil, err
		}
	}
	id := skill.ID("uploaded")
	if parts.Accept != nil { // it is asked about the skill that there is
		id = cmp.Or(o.all.Skill, id)
		if err := parts.Accept(&skill.Descriptor{ID: id, Runner: skill.Agentic}); err != nil {
			return nil, err
		}
	}
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.all.seen = append(o.all.seen, what)
	state := skill.StateDisabled
	if dryRun {
		state = skill.StateDryRun
	}
	return &skill.UploadResult{
		ID: id, Version: "1.0.0", Digest: "sha256:" + strings.Repeat("0", 64), State: state, Report: json.RawMessage(`{"verdict":"accepted"}`),
	}, nil
}

func (o *upload) Close() error {
	for _, name := range o.files {
		_ = os.Remove(name) // a test that looks for it fails
	}
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.all.open--
	o.all.reserved -= o.reserved
	return nil
}

// Decide answers as if it were done.
func (u *Uploads) Decide(d catalogue.Decision) (skill.VersionState, error) {
	scope := skill.ScopeUpload
	if d.Action == catalogue.Approve {
		scope = skill.ScopeAdmin
	}
	p := d.By
	if !p.May(skill.ScopeAdmin) { // who has it decides about every upload
		if err := may(p, scope); err != nil {
			return skill.VersionState{}, err
		}
	}
	owner := d.Tenant
	if owner == "" || !p.May(skill.ScopeAdmin) {
		owner = p.Tenant
	}
	if id := u.Skill; id == "" && d.ID != "uploaded" || id != "" && id != d.ID || u.Owner != "" && u.Owner != owner {
		return skill.VersionState{}, &skill.Error{Code: skill.NotFound, Message: "skill not found"}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asks = append(u.asks, d)
	state := map[catalogue.Action]skill.State{catalogue.Disable: skill.StateDisabled, catalogue.Delete: skill.StateDeleted}[d.Action]
	return skill.VersionState{
		ID: d.ID, Version: cmp.Or(d.Version, "1.0.0"), Digest: "sha256:" + strings.Repeat("0", 64),
		State: cmp.Or(state, skill.StateEnabled), Shared: d.Action == catalogue.Approve,
	}, nil
}

// SetPackages answers as if it were done.
func (u *Uploads) SetPackages(_ context.Context, d catalogue.Decision, w *api.PackageWish) (*skill.PackagesResult, error) {
	if err := may(d.By, skill.ScopeAdmin); err != nil {
		return nil, err
	}
	if u.Skill == "" && d.ID != "uploaded" || u.Skill != "" && u.Skill != d.ID || u.Owner != "" && u.Owner != cmp.Or(d.Tenant, d.By.Tenant) {
		return nil, &skill.Error{Code: skill.NotFound, Message: "skill not found"}
	}
	out := &skill.PackagesResult{ID: d.ID, Version: d.Version, Digest: "sha256:" + strings.Repeat("0", 64), State: skill.StateDisabled, Added: []string{}, Removed: []string{}}
	if w == nil {
		return out, nil
	}
	out.Packages, out.Added = json.RawMessage(`{"lock":1,"folder":"","asked":[],"packages":[],"set":"","files":0,"bytes":0}`), append(out.Added, w.Names...)
	return out, nil
}

// Bill answers like Report.
func (u *Uploads) Bill(ctx context.Context, p skill.Principal, id skill.ID, version string) (json.RawMessage, error) {
	_, err := u.Report(ctx, p, id, version)
	return json.RawMessage(`{"bomFormat":"CycloneDX","specVersion":"1.6"}`), err
}

// File answers with the path, like Report.
func (u *Uploads) File(ctx context.Context, p skill.Principal, id skill.ID, version, path string) ([]byte, error) {
	_, err := u.Report(ctx, p, id, version)
	return []byte(path), err
}

// Report answers for the version of the skill that there is, to those of its tenant.
func (u *Uploads) Report(_ context.Context, p skill.Principal, id skill.ID, version string) (*skill.UploadResult, error) {
	if u.Skill == "" && id != "uploaded" || u.Skill != "" && u.Skill != id || u.Owner != "" && u.Owner != p.Tenant {
		return nil, &skill.Error{Code: skill.NotFound, Message: "skill not found"}
	}
	return &skill.UploadResult{ID: id, Version: version, Digest: "sha256:0", State: skill.StateDisabled, Report: json.RawMessage(`{"verdict":"accepted"}`)}, nil
}

// Uploaded answers like Report, with the version 1.0.0 of the skill that there is.
func (u *Uploads) Uploaded(p skill.Principal, id skill.ID) ([]catalogue.Uploaded, error) {
	there := cmp.Or(u.Skill, "uploaded")
	if id != "" && id != there || u.Owner != "" && u.Owner != p.Tenant {
		return nil, nil
	}
	return []catalogue.Uploaded{{ID: there, Default: "1.0.0", Versions: []catalogue.UploadedVersion{{Version: "1.0.0", Description: "An upload.", At: time.Unix(1_800_000_000, 0)}}}}, nil
}

// Archive writes the name of the version.
func (u *Uploads) Archive(ctx context.Context, p skill.Principal, id skill.ID, version string, w io.Writer) error {
	_, err := u.Report(ctx, p, id, version)
	if err == nil {
		_, err = io.WriteString(w, version)
	}
	return err
}
