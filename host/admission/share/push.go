package share

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"openskill/sdk/skill"
)

// PushOptions say how a skill is pushed.
type PushOptions struct {
	Tags  []string // beside that of the version
	Force bool     // puts another skill under a version that is there already
}

// Pushed says what came of it.
type Pushed struct {
	Reference string   // host/repository:version
	Manifest  string   // digest of the OCI manifest
	Tags      []string // all, that of the version first
	Changed   bool     // it was not there before
}

// Push sends a parcel to a registry, under its version. A version that has other files
// there already is refused (CONFLICT). The error is an *skill.Error.
func (c *Carrier) Push(ctx context.Context, r *Remote, ref Reference, p *Parcel, o PushOptions) (*Pushed, error) {
	switch v := ref.Version(); {
	case v != "" && v != Tag(p.Version):
		return nil, invalid("share.Push", "the skill has version %s but the reference says %q; omit it, or add tags with --tag", p.Version, v)
	case len(o.Tags) > 20:
		return nil, invalid("share.Push", "more than 20 tags")
	}
	version := ref.At(Tag(p.Version))
	for _, tag := range o.Tags {
		at := ref.At(tag).ref
		if tag == "" || at.ValidateReferenceAsTag() != nil || Version(tag) && tag != p.Version {
			return nil, invalid("share.Push", "invalid tag %q for %s: use at most 128 letters, digits, _, . and -, and no other version", skill.CleanText(tag, 80), p.Version)
		}
	}
	repo, err := r.repository(version)
	if err != nil {
		return nil, err
	}
	there, err := c.there(ctx, repo, version, p, o.Force)
	if err != nil {
		return nil, err
	}
	out := &Pushed{Reference: version.String(), Manifest: p.Manifest(), Tags: []string{version.Version()}, Changed: !there}
	if !there {
		if err := c.send(ctx, repo, p); err != nil {
			return nil, err
		}
	}
	for _, tag := range append([]string{version.Version()}, o.Tags...) {
		if there && tag == version.Version() {
			continue
		}
		if err := repo.PushReference(ctx, p.desc, bytes.NewReader(p.manifest), tag); err != nil {
			return nil, told(ctx, ref.Host(), err)
		}
		if tag != version.Version() {
			out.Tags = append(out.Tags, tag)
		}
	}
	// Registries have no way to put a tag only where there is none: of two who push at
	// once, the one that came first learns that it is not there.
	now, err := repo.Resolve(ctx, version.Version())
	switch {
	case err != nil:
		return nil, told(ctx, ref.Host(), err)
	case now.Digest != p.desc.Digest:
		return nil, conflict("share.Push", "another push replaced %s at the same time", version)
	}
	return out, nil
}

// there reports whether the registry has just this artifact under the version.
func (c *Carrier) there(ctx context.Context, repo *remote.Repository, ref Reference, p *Parcel, force bool) (bool, error) {
	desc, err := repo.Resolve(ctx, ref.Version())
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return false, nil
	case err != nil:
		return false, told(ctx, ref.Host(), err)
	case desc.Digest == p.desc.Digest:
		return true, nil
	case force:
		return false, nil
	}
	old, err := c.fetchManifest(ctx, &source{from: repo, host: ref.Host()}, desc)
	switch {
	case err != nil && skill.CodeOf(err) != skill.ArchiveRejected:
		return false, err
	case err != nil:
		return false, conflict("share.Push", "%s is not a skill; use --force to replace it", ref)
	case old.Statement != p.Statement:
		return false, conflict("share.Push", "%s exists with other files (%s); raise the version, or replace it with --force", ref, old.Digest)
	case old.Signature != nil && p.Signature == nil:
		return false, conflict("share.Push", "%s exists with a signature, which would be lost; sign it, or replace it with --force", ref)
	}
	return false, nil // the same files, and a signature that is new
}

// send sends what the registry does not have yet.
func (c *Carrier) send(ctx context.Context, repo *remote.Repository, p *Parcel) error {
	host := repo.Reference.Registry
	desc, data := config()
	if err := put(ctx, repo, desc, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }); err != nil {
		return told(ctx, host, err)
	}
	for i, desc := range p.layers {
		err := put(ctx, repo, desc, func() (io.ReadCloser, error) {
			r, err := p.blob(i)
			if err != nil || i > 0 {
				return r, err
			}
			return watched{c.o.Watch(string(p.ID), desc.Size, r), r}, nil
		})
		if err != nil {
			return told(ctx, host, err)
		}
	}
	return nil
}

type watched struct {
	io.Reader
	io.Closer
}

func put(ctx context.Context, repo *remote.Repository, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	has, err := repo.Blobs().Exists(ctx, desc)
	if err != nil || has {
		return err
	}
	r, err := open()
	if err != nil {
		return fmt.Errorf("share.Push: %w", err)
	}
	defer r.Close()
	return repo.Blobs().Push(ctx, desc, r)
}
