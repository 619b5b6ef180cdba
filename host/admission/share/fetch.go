package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"openskill/host/admission"
	"openskill/sdk/skill"
)

// source is where artifacts are fetched from: a repository of a registry or a bundle.
type source struct {
	from  content.Fetcher
	host  string // for messages
	place string // for the policy: host/repository, or bundle
	name  string // for the lock file
}

// fetchManifest reads the manifest of an artifact and its signature, and not yet what
// is large.
func (c *Carrier) fetchManifest(ctx context.Context, src *source, desc ocispec.Descriptor) (*Parcel, error) {
	switch {
	case desc.MediaType == ocispec.MediaTypeImageIndex:
		return nil, malformed("not a skill but an index of several artifacts; name the skill itself")
	case desc.MediaType != ocispec.MediaTypeImageManifest:
		return nil, malformed("not a skill: its type is %q", desc.MediaType)
	case desc.Size > maxManifest:
		return nil, &skill.Error{Op: "share.Fetch", Code: skill.PayloadTooLarge, Message: fmt.Sprintf("the artifact's manifest is too large: %d bytes, the limit is %d", desc.Size, maxManifest)}
	}
	b, err := small(ctx, src, desc)
	if err != nil {
		return nil, err
	}
	p, err := c.readManifest(b)
	if err != nil {
		return nil, err
	}
	p.desc = ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
	if len(p.layers) > 1 {
		if p.Signature, err = small(ctx, src, p.layers[1]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// small reads what fits into memory; its size was looked at.
func small(ctx context.Context, src *source, desc ocispec.Descriptor) ([]byte, error) {
	if !sha256Digest.MatchString(string(desc.Digest)) || desc.Size < 0 {
		return nil, malformed("the artifact is not named by a SHA-256 digest and a size")
	}
	r, err := src.from.Fetch(ctx, desc)
	if err != nil {
		return nil, told(ctx, src.host, err)
	}
	defer r.Close()
	b, err := content.ReadAll(r, desc)
	if err != nil {
		return nil, unsound(ctx, src.host, err)
	}
	return b, nil
}

// unsound tells bytes that are not those of their digest from a network that failed.
func unsound(ctx context.Context, host string, err error) error {
	if ctx.Err() == nil && (errors.Is(err, content.ErrMismatchedDigest) || errors.Is(err, content.ErrTrailingData)) {
		return malformed("digest mismatch: %s sent other data than announced", host)
	}
	if ctx.Err() == nil && errors.Is(err, io.ErrUnexpectedEOF) {
		return &skill.Error{Op: "share.Fetch", Code: skill.ToolInvocationError, Message: "the transfer from " + host + " was interrupted; nothing was changed", Err: err}
	}
	return told(ctx, host, err)
}

// fetchArchive writes the archive into staging. Bytes are counted while they come.
func (c *Carrier) fetchArchive(ctx context.Context, src *source, p *Parcel, staging string) error {
	return c.fetchInto(ctx, src, p, func() (*os.File, error) { return os.CreateTemp(staging, "archive-") })
}

func (c *Carrier) fetchInto(ctx context.Context, src *source, p *Parcel, into func() (*os.File, error)) error {
	desc := p.layers[0]
	r, err := src.from.Fetch(ctx, desc)
	if err != nil {
		return told(ctx, src.host, err)
	}
	defer r.Close()
	f, err := into()
	if err != nil {
		return fmt.Errorf("share.Fetch: %w", err)
	}
	defer f.Close()
	checked := content.NewVerifyReader(c.o.Watch(string(p.ID), desc.Size, &stoppable{ctx, r}), desc)
	if _, err := io.Copy(f, checked); err != nil {
		return unsound(ctx, src.host, err)
	}
	if err := checked.Verify(); err != nil {
		return unsound(ctx, src.host, err)
	}
	p.archive = f.Name()
	return nil
}

// stoppable ends reading when its context does: the ends of what a bundle has, too.
type stoppable struct {
	ctx context.Context //nolint:containedctx // of the one transfer that it serves
	r   io.Reader
}

func (s *stoppable) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(b)
}

// Unpack admits what was fetched into a folder of staging, and holds it against what the
// artifact and its signature say. The error is an *skill.Error.
func (c *Carrier) Unpack(ctx context.Context, p *Parcel, trust skill.Trust, owner, staging string) (*admission.Admitted, error) {
	f, err := os.Open(p.archive)
	if err != nil {
		return nil, fmt.Errorf("share.Unpack: %w", err)
	}
	defer f.Close()
	a, err := c.o.Admission.Admit(ctx, admission.Source{Archive: f, Trust: trust, Owner: owner}, staging)
	if err != nil {
		return nil, err
	}
	if err := p.Holds(a); err != nil {
		return nil, errors.Join(err, admission.Discard(a.Folder))
	}
	return a, nil
}

// Holds says whether what was admitted is what the artifact says that it is, and nothing
// that Pack would leave out. The error is an *skill.Error, SIGNATURE_INVALID or
// ARCHIVE_REJECTED.
func (p *Parcel) Holds(a *admission.Admitted) error {
	d := &a.Skill.Descriptor
	is := Statement{ID: d.ID, Version: d.Version, Digest: a.Digest}
	for _, f := range a.Report.Files {
		if !travels(f.Path) { // nobody who verifies the folder later would look at it
			return malformed("the artifact has %s: hidden files, target, node_modules and __pycache__ are not allowed", f.Path)
		}
	}
	if is == p.Statement {
		return nil
	}
	return &skill.Error{Op: "share.Unpack", Code: skill.SignatureInvalid, Message: skill.CleanText(fmt.Sprintf(
		"the artifact claims to be %s %s with the digest %s, but its files are %s %s with the digest %s",
		p.ID, p.Version, p.Digest, is.ID, is.Version, is.Digest), skill.MaxMessage)}
}

// Verified is a skill that was fetched and whose publisher is accepted. What its files are
// is still to be seen: by admission, and then by Holds.
type Verified struct {
	*Parcel
	Decision
	Reference string   // with the version
	Archive   *os.File // at its beginning; the caller's
}

// Fetch fetches a skill for those who admit and keep it themselves. may is asked before
// what is large is fetched, and into makes the file for that. The error is an *skill.Error.
func (c *Carrier) Fetch(ctx context.Context, r *Remote, ref Reference, accepts *Policy, may func(*Parcel) error, into func() (*os.File, error)) (*Verified, error) {
	src, repo, at, err := r.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	desc, err := repo.Resolve(ctx, at.Version())
	if err != nil {
		return nil, told(ctx, at.Host(), err)
	}
	v := &Verified{Reference: at.String()}
	if v.Parcel, err = c.fetchManifest(ctx, src, desc); err != nil {
		return nil, err
	}
	if v.Decision, err = accepts.Decide(src.place, v.Statement, v.Signature); err != nil {
		return nil, err
	}
	if err := may(v.Parcel); err != nil {
		return nil, err
	}
	if err := c.fetchInto(ctx, src, v.Parcel, into); err != nil {
		return nil, err
	}
	if v.Archive, err = os.Open(v.archive); err != nil {
		return nil, fmt.Errorf("share.Fetch: %w", err)
	}
	return v, nil
}

// Older refuses a version that is not higher than all that are there. The error is an
// *skill.Error, DOWNGRADE_REFUSED.
func Older(s Statement, there []string) error {
	for _, v := range there {
		if v != s.Version && Compare(s.Version, v) <= 0 {
			return &skill.Error{Op: "share.Older", Code: skill.DowngradeRefused, Message: fmt.Sprintf("%s %s is installed and %s is not higher", s.ID, v, s.Version)}
		}
	}
	return nil
}
