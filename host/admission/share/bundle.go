package share

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/oci"

	"openskill/host/admission"
	"openskill/sdk/skill"
)

// What a bundle may hold.
const (
	maxBundled  = 1000    // skills
	maxIndex    = 1 << 20 // bytes of its index
	maxEntries  = 4*maxBundled + 10
	bundleIndex = ocispec.ImageIndexFile
)

// FetchParcel fetches a whole parcel, so that it can be put elsewhere. It is checked as a
// host would check it, and by no policy: whoever installs it does that.
func (c *Carrier) FetchParcel(ctx context.Context, r *Remote, ref Reference, staging string) (*Parcel, error) {
	src, repo, at, err := r.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	desc, err := repo.Resolve(ctx, at.Version())
	if err != nil {
		return nil, told(ctx, at.Host(), err)
	}
	return c.fetchWhole(ctx, src, desc, staging)
}

func (c *Carrier) fetchWhole(ctx context.Context, src *source, desc ocispec.Descriptor, staging string) (*Parcel, error) {
	p, err := c.fetchManifest(ctx, src, desc)
	if err != nil {
		return nil, err
	}
	if err := c.fetchArchive(ctx, src, p, staging); err != nil {
		return nil, err
	}
	a, err := c.Unpack(ctx, p, skill.Trusted, "", staging)
	if err != nil {
		return nil, err
	}
	if err := admission.Discard(a.Folder); err != nil {
		return nil, hostFault(err)
	}
	return p, nil
}

// Export writes a bundle: an OCI image layout as a tar, the same bytes for the same
// parcels, in whatever order they are given.
func Export(w io.Writer, parcels []*Parcel) error {
	if len(parcels) > maxBundled {
		return invalid("share.Export", "too many skills for a bundle; the limit is %d", maxBundled)
	}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}}
	blobs := map[string]func() (io.ReadCloser, error){}
	sizes := map[string]int64{}
	add := func(d ocispec.Descriptor, open func() (io.ReadCloser, error)) {
		name := path.Join(ocispec.ImageBlobsDir, d.Digest.Algorithm().String(), d.Digest.Encoded())
		blobs[name], sizes[name] = open, d.Size
	}
	text := func(b []byte) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(b))), nil }
	}
	seen := map[string]bool{}
	for _, p := range parcels {
		name := string(p.ID) + "-" + Tag(p.Version)
		if seen[name] {
			return conflict("share.Export", "%s %s is listed twice", p.ID, p.Version)
		}
		seen[name] = true
		d := p.desc
		d.ArtifactType, d.Annotations = ArtifactType, map[string]string{ocispec.AnnotationRefName: name}
		index.Manifests = append(index.Manifests, d)
		add(p.desc, text(p.manifest))
		desc, data := config()
		add(desc, text(data))
		for i, l := range p.layers {
			add(l, func() (io.ReadCloser, error) { return p.blob(i) })
		}
	}
	slices.SortFunc(index.Manifests, func(a, b ocispec.Descriptor) int {
		return cmp.Compare(a.Annotations[ocispec.AnnotationRefName], b.Annotations[ocispec.AnnotationRefName])
	})
	for name, v := range map[string]any{bundleIndex: index, ocispec.ImageLayoutFile: ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion}} {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("share.Export: %w", err)
		}
		blobs[name], sizes[name] = text(b), int64(len(b))
	}
	names := make([]string, 0, len(blobs))
	for name := range blobs {
		names = append(names, name)
	}
	slices.Sort(names)
	t := tar.NewWriter(w)
	for _, name := range names {
		if err := addEntry(t, name, sizes[name], blobs[name]); err != nil {
			return fmt.Errorf("share.Export: %w", err)
		}
	}
	return t.Close()
}

func addEntry(t *tar.Writer, name string, size int64, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(t, r)
	return err
}

// Bundle is one that is read. It is only as good as what [Carrier.Import] says of it.
type Bundle struct {
	src   *source
	index []ocispec.Descriptor
}

var bundled = regexp.MustCompile(`^(oci-layout|index\.json|blobs/|blobs/sha256/|blobs/sha256/[0-9a-f]{64})$`)

// OpenBundle reads the index of a bundle. The error is an *skill.Error.
func (c *Carrier) OpenBundle(file string) (*Bundle, error) {
	index, err := c.readIndex(file)
	if err != nil {
		return nil, err
	}
	if err := plainJSON(index, indexKeys); err != nil {
		return nil, malformed("invalid bundle index: %v", err)
	}
	var i ocispec.Index
	if err := json.Unmarshal(index, &i); err != nil {
		return nil, malformed("invalid bundle index: %v", err)
	}
	if i.SchemaVersion != 2 || len(i.Manifests) == 0 || len(i.Manifests) > maxBundled {
		return nil, malformed("the bundle has %d skills; the limit is 1 to %d", len(i.Manifests), maxBundled)
	}
	blobs, err := oci.NewStorageFromTar(file)
	if err != nil {
		return nil, malformed("cannot read the bundle: %v", unpathed(err))
	}
	return &Bundle{src: &source{from: blobs, host: "the bundle", place: PlaceBundle, name: PlaceBundle}, index: i.Manifests}, nil
}

// readIndex goes through the whole archive before anybody looks things up in it, and gives
// its index.
func (c *Carrier) readIndex(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, invalid("share.Import", "cannot open the bundle: %s", unpathed(err))
	}
	defer f.Close()
	var index []byte
	seen := map[string]bool{}
	t := tar.NewReader(f)
	for {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF) && index != nil:
			return index, nil
		case errors.Is(err, io.EOF):
			return nil, malformed("not a bundle: %s is missing", bundleIndex)
		case err != nil:
			return nil, malformed("not a bundle, or damaged or truncated: %v", err)
		}
		switch {
		case !bundled.MatchString(h.Name) || seen[h.Name] || len(seen) == maxEntries:
			return nil, malformed("unexpected or duplicate entry %q in the bundle", skill.CleanText(h.Name, 80))
		case h.Typeflag == tar.TypeDir && strings.HasSuffix(h.Name, "/"):
		case h.Typeflag != tar.TypeReg || strings.HasSuffix(h.Name, "/"):
			return nil, malformed("the bundle entry %q is not a file", skill.CleanText(h.Name, 80))
		case h.Size > max(c.o.MaxArchive, maxIndex):
			return nil, &skill.Error{Op: "share.Import", Code: skill.PayloadTooLarge, Message: fmt.Sprintf("a file of the bundle is too large: %d bytes, the limit is %d", h.Size, c.o.MaxArchive)}
		}
		seen[h.Name] = true
		if h.Name != bundleIndex {
			continue
		}
		if index, err = io.ReadAll(io.LimitReader(t, maxIndex+1)); err != nil {
			return nil, malformed("the bundle is damaged or truncated: %v", err)
		}
		if len(index) > maxIndex {
			return nil, malformed("the bundle's index is too large; the limit is %d bytes", maxIndex)
		}
	}
}

// Import installs the skills of a bundle by the rules of [Carrier.Pull]. Nothing of a bundle
// of which one skill is refused is installed. The error is an *skill.Error.
func (c *Carrier) Import(ctx context.Context, b *Bundle, o PullOptions) ([]*Pulled, error) {
	done := []*Pulled{}
	err := c.within(ctx, o.Dir, func(in *install) error {
		var ready []func() (*Pulled, error)
		seen := map[skill.ID]bool{}
		for _, desc := range b.index {
			place, id, err := c.prepare(ctx, b.src, desc, o, in)
			if err != nil {
				return err
			}
			if seen[id] {
				return conflict("share.Import", "the bundle has two versions of %s; pull the one you want", id)
			}
			seen[id] = true
			ready = append(ready, place)
		}
		var err error
		done, err = placeAll(ready)
		return err
	})
	return done, err
}

// Parcels fetches everything that a bundle has, to put it elsewhere.
func (c *Carrier) Parcels(ctx context.Context, b *Bundle, staging string) ([]*Parcel, error) {
	var all []*Parcel
	for _, desc := range b.index {
		p, err := c.fetchWhole(ctx, b.src, desc, staging)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// InRegistry is the reference of a skill below a prefix, HOST or HOST/PREFIX.
func InRegistry(prefix string, id skill.ID) (Reference, error) {
	return ParseReference(strings.TrimSuffix(prefix, "/") + "/" + string(id))
}
