package share

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// PullOptions say what is accepted, and where it goes.
type PullOptions struct {
	Dir       string // the folder of skills; made where it is missing
	Policy    *Policy
	Downgrade bool // accept a version that is lower than the one that is there
}

// Pulled is a skill that was installed.
type Pulled struct {
	ID      skill.ID
	Path    string // of its folder
	Changed bool   // it was not there before
	manifest.LockEntry
}

// Pull installs a skill out of a registry into the folder o.Dir, or refuses it and changes
// nothing. The error is an *skill.Error.
func (c *Carrier) Pull(ctx context.Context, r *Remote, ref Reference, o PullOptions) (*Pulled, error) {
	var done *Pulled
	err := c.within(ctx, o.Dir, func(in *install) error {
		src, repo, at, err := r.open(ctx, ref)
		if err != nil {
			return err
		}
		desc, err := repo.Resolve(ctx, at.Version())
		if err != nil {
			return told(ctx, at.Host(), err)
		}
		done, err = c.pull(ctx, src, desc, o, in)
		return err
	})
	return done, err
}

// Restore installs what the lock file of o.Dir names, exactly: each skill by the digest of
// its manifest, verified with the key by which it was verified before, or by o.Policy if
// there is one. Folders that were changed since are replaced. Skills before one that fails
// stay installed. The error is an *skill.Error.
func (c *Carrier) Restore(ctx context.Context, r *Remote, o PullOptions) ([]*Pulled, error) {
	done := []*Pulled{}
	err := c.within(ctx, o.Dir, func(in *install) error {
		in.restoring = true
		ids := make([]skill.ID, 0, len(in.lock.Skills))
		for id := range in.lock.Skills {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			one, err := c.restore(ctx, r, in, id, o)
			if err != nil {
				return err
			}
			done = append(done, one)
		}
		return nil
	})
	return done, err
}

func (c *Carrier) restore(ctx context.Context, r *Remote, in *install, id skill.ID, o PullOptions) (*Pulled, error) {
	e := in.lock.Skills[id]
	if in.intact(id, e.Digest) {
		return &Pulled{ID: id, Path: in.path(id), LockEntry: *e}, nil
	}
	if e.Reference == PlaceBundle {
		return nil, &skill.Error{Op: "share.Restore", Code: skill.NotFound, Message: fmt.Sprintf("%s was imported from a bundle: import it again", id)}
	}
	var err error
	if o.Policy == nil {
		if o.Policy, err = lockedPolicy(id, e); err != nil {
			return nil, err
		}
	}
	if from, err := ParseOrigin(e.Reference); err == nil {
		done, err := c.add(ctx, r, from, AddOptions{PullOptions: o}, in)
		if err != nil {
			return nil, err
		}
		return done[0], nil
	}
	ref, err := ParseReference(e.Reference)
	if err != nil {
		return nil, err
	}
	ref = ref.At(e.Manifest)
	src, repo, at, err := r.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	src.name = e.Reference
	desc, err := repo.Resolve(ctx, at.Version())
	if err != nil {
		return nil, told(ctx, at.Host(), err)
	}
	return c.pull(ctx, src, desc, o, in)
}

// lockedPolicy accepts what was accepted when the entry was written.
func lockedPolicy(id skill.ID, e *manifest.LockEntry) (*Policy, error) {
	if e.Key == "" {
		return OfKeys(nil, true), nil
	}
	key, err := ParsePublic(e.Key)
	if err != nil {
		return nil, &skill.Error{Op: "share.Restore", Code: skill.SignatureInvalid, Message: fmt.Sprintf("%s: the key of %s is not a public key", manifest.LockName, id), Err: err}
	}
	return &Policy{Publishers: []Publisher{{
		Name: e.Publisher, Keys: []PublicKey{key}, Skills: []string{string(id)}, Trust: e.Trust,
	}}}, nil
}

// pull fetches, verifies, admits and installs one skill.
func (c *Carrier) pull(ctx context.Context, src *source, desc ocispec.Descriptor, o PullOptions, in *install) (*Pulled, error) {
	place, _, err := c.prepare(ctx, src, desc, o, in)
	if err != nil {
		return nil, err
	}
	return place()
}

// prepare does everything about a skill but to install it, which what it returns does.
func (c *Carrier) prepare(ctx context.Context, src *source, desc ocispec.Descriptor, o PullOptions, in *install) (place func() (*Pulled, error), id skill.ID, err error) {
	p, err := c.fetchManifest(ctx, src, desc)
	if err != nil {
		return nil, "", err
	}
	if o.Policy == nil {
		o.Policy = &Policy{} // which accepts nothing
	}
	by, err := o.Policy.Decide(src.place, p.Statement, p.Signature)
	if err != nil {
		return nil, "", err
	}
	entry := &manifest.LockEntry{
		Version: p.Version, Digest: p.Digest, Reference: src.name, Manifest: p.Manifest(),
		Publisher: by.Publisher, Key: by.Key, Trust: by.Trust,
	}
	if err := in.may(p.ID, entry, o.Downgrade); err != nil {
		return nil, "", err
	}
	if in.intact(p.ID, p.Digest) {
		return func() (*Pulled, error) { return in.keep(p.ID, entry, p.Signature) }, p.ID, nil
	}
	if err := c.fetchArchive(ctx, src, p, in.staging); err != nil {
		return nil, "", err
	}
	a, err := c.Unpack(ctx, p, by.Trust, "", in.staging)
	if err != nil {
		return nil, "", err
	}
	if err := ctx.Err(); err != nil {
		return nil, "", told(ctx, src.host, err)
	}
	return func() (*Pulled, error) { return in.place(p.ID, a.Folder, entry, p.Signature) }, p.ID, nil
}

// Packed is what Verify found about a folder.
type Packed struct {
	Statement
	Decision
	LeftOut []string // what of the folder is not covered, because it does not travel
	Signed  bool
}

// Verify says who signed the files that a folder has now. The error is an *skill.Error.
func (c *Carrier) Verify(ctx context.Context, folder, staging string, p *Policy) (*Packed, error) {
	parcel, err := c.Pack(ctx, folder, staging)
	if err != nil {
		return nil, err
	}
	from := Anywhere
	if dir, err := whole(folder); err == nil {
		if f, err := manifest.ReadLock(filepath.Dir(dir)); err == nil {
			if e := f.Skills[parcel.ID]; e != nil && filepath.Base(dir) == string(parcel.ID) && e.Digest == parcel.Digest {
				from = place(e.Reference)
			}
		}
	}
	by, err := p.Decide(from, parcel.Statement, parcel.Signature)
	if err != nil {
		return nil, err
	}
	return &Packed{Statement: parcel.Statement, Decision: by, LeftOut: parcel.LeftOut, Signed: by.Key != ""}, nil
}

// place is where a skill of the lock file came from, as a policy takes it.
func place(reference string) string {
	if from, err := ParseOrigin(reference); err == nil {
		return from.place()
	}
	if ref, err := ParseReference(reference); err == nil {
		return ref.Place()
	}
	return PlaceBundle
}
