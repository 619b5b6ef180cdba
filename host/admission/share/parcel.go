package share

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"

	"openskill/host/admission"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// The media types of an artifact.
const (
	ArtifactType  = "application/vnd.openskill.skill.v1"
	ArchiveType   = "application/vnd.openskill.skill.archive.v1+zip"
	SignatureType = "application/vnd.openskill.skill.signature.v1"
)

// The annotations of an artifact, beside those of OCI for title, version and description.
const (
	AnnotationDigest = "openskill.digest" // of the files, as manifest.Digest gives it
	AnnotationType   = "openskill.type"   // the kind of runner
)

// created is when every artifact was made: a time would make another manifest of the
// same skill with each run.
const created = "1970-01-01T00:00:00Z"

// unversioned begins the version of an Agent Skill whose SKILL.md has none.
const unversioned = "0.0.0-sha"

// maxManifest is the length in bytes of the longest manifest: ours have one or two KiB.
const maxManifest = 64 << 10

// Parcel is a skill on its way, packed from a folder or fetched from elsewhere.
type Parcel struct {
	// Statement is what the artifact says that it is. Of one that was fetched it is
	// true only after [Carrier.Unpack].
	Statement
	Description string
	Runner      skill.Kind
	Signature   []byte   // the content of its file; nil: unsigned
	LeftOut     []string // what of a folder does not travel

	manifest []byte
	desc     ocispec.Descriptor // of the manifest
	layers   []ocispec.Descriptor
	archive  string // the file that holds layer 0
}

// Manifest is the digest of the OCI manifest.
func (p *Parcel) Manifest() string { return p.desc.Digest.String() }

// Size is the size of the archive in bytes.
func (p *Parcel) Size() int64 { return p.layers[0].Size }

// Tag is the tag of a version: OCI has no + in tags, and versions have no underscore.
func Tag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// Options of a Carrier.
type Options struct {
	// Admission admits what is packed and what is fetched. Required.
	Admission *admission.Admission
	// MaxArchive is the size in bytes of the largest archive that is fetched; 0: 32 MiB.
	// It should be that of the admission.
	MaxArchive int64
	// Watch is given the archives that are on their way, and what it returns is read
	// instead; nil: nobody watches.
	Watch func(what string, size int64, r io.Reader) io.Reader
}

// Carrier packs skills and unpacks them. It is safe for concurrent use.
type Carrier struct {
	o    Options
	step func(string) error // tests fail the steps of an installation here
}

// New makes a carrier. The error is non-nil only for incomplete Options.
func New(o Options) (*Carrier, error) {
	if o.Admission == nil {
		return nil, errors.New("share: Admission is nil; skills of strangers must be admitted")
	}
	if o.MaxArchive <= 0 {
		o.MaxArchive = 32 << 20
	}
	if o.Watch == nil {
		o.Watch = func(_ string, _ int64, r io.Reader) io.Reader { return r }
	}
	return &Carrier{o: o, step: func(string) error { return nil }}, nil
}

// stays says what of a folder does not travel: what is hidden, which is where secrets
// and histories are, and what tools make beside the sources and can make again.
func stays(name string, folder bool) bool {
	base := path.Base(name)
	switch {
	case strings.HasPrefix(base, "."):
		return true
	case folder:
		return slices.Contains([]string{"target", "node_modules", "__pycache__"}, base)
	}
	return strings.HasSuffix(base, ".pyc")
}

// travels is what stays says of a file and of the folders above it.
func travels(name string) bool {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if stays(folder, true) {
			return false
		}
	}
	return !stays(name, false)
}

// Pack makes a parcel of a skill's folder, and of the signature beside it if there is
// one.
func (c *Carrier) Pack(ctx context.Context, folder, staging string) (*Parcel, error) {
	p, err := c.PackFiles(ctx, folder, staging)
	if err != nil {
		return nil, err
	}
	if p.Signature, err = ReadSignature(folder); err != nil || p.Signature == nil {
		return p, err
	}
	return p, p.seal(ctx)
}

// PackFiles is [Carrier.Pack] without the signature. The folder must be what a host would accept, built and all; what only trusted skills may
// have is accepted here, and refused by those who do not trust the publisher. The
// parcel's archive is in staging, which is the caller's to remove.
func (c *Carrier) PackFiles(ctx context.Context, folder, staging string) (*Parcel, error) {
	folder, err := whole(folder)
	if err != nil {
		return nil, err
	}
	p := &Parcel{}
	f, err := os.CreateTemp(staging, "archive-")
	if err != nil {
		return nil, fmt.Errorf("share.Pack: %w", err)
	}
	defer f.Close()
	p.archive = f.Name()
	err = admission.PackSome(f, folder, func(name string, folder bool) bool {
		out := stays(name, folder)
		if out {
			p.leave(name, folder)
		}
		return out
	})
	if err != nil {
		return nil, &skill.Error{Op: "share.Pack", Code: skill.ArchiveRejected, Message: skill.CleanText("cannot pack the folder: "+unpathed(err), skill.MaxMessage), Err: err}
	}
	admitted, err := c.o.Admission.Admit(ctx, admission.Source{Archive: f, Trust: skill.Trusted}, staging)
	if err != nil {
		return nil, err
	}
	d := &admitted.Skill.Descriptor
	if d.Runner == skill.Agentic && strings.HasPrefix(d.Version, unversioned) {
		return nil, &skill.Error{
			Op: "share.Pack", Code: skill.InvalidManifest, Subject: string(d.ID),
			Message: "SKILL.md has no version of three numbers; set one, such as metadata: {version: \"1.0.0\"}",
		}
	}
	p.Statement = Statement{ID: d.ID, Version: d.Version, Digest: admitted.Digest}
	p.Description, p.Runner = d.Description, d.Runner
	if err := admission.Discard(admitted.Folder); err != nil {
		return nil, fmt.Errorf("share.Pack: %w", err)
	}
	return p, p.seal(ctx)
}

// maxLeftOut is how much of what does not travel is named.
const maxLeftOut = 20

func (p *Parcel) leave(name string, folder bool) {
	if folder {
		name += "/"
	}
	if name == manifest.MarkFile { // of this machine alone
		return
	}
	if len(p.LeftOut) < maxLeftOut {
		p.LeftOut = append(p.LeftOut, skill.CleanText(name, 200))
	}
}

// whole is the absolute path of a folder: . and .. have no name to put a signature beside.
func whole(folder string) (string, error) {
	abs, err := filepath.Abs(folder)
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(abs); err == nil && !info.IsDir() {
			err = errors.New("it is not a folder")
		}
	}
	if err != nil {
		return "", &skill.Error{Op: "share.Pack", Code: skill.InvalidArgument, Message: skill.CleanText(filepath.Base(folder)+" cannot be packed: "+unpathed(err), skill.MaxMessage), Err: err}
	}
	return abs, nil
}

// SignatureFile is where the signature of a folder stands: beside it, so that the
// folder's digest is untouched.
func SignatureFile(folder string) (string, error) {
	abs, err := filepath.Abs(folder)
	return abs + SignatureExt, err
}

// ReadSignature reads the signature beside a folder; nil where there is none.
func ReadSignature(folder string) ([]byte, error) {
	name, err := SignatureFile(folder)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && (!info.Mode().IsRegular() || info.Size() > MaxSignature):
		err = fmt.Errorf("it is not a file of at most %d bytes", MaxSignature)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, &skill.Error{Op: "share.ReadSignature", Code: skill.SignatureInvalid, Message: skill.CleanText("cannot read the signature beside the folder: "+unpathed(err), skill.MaxMessage), Err: err}
	}
	return b, nil
}

// Fits says whether the signature is one of these files: verified by a key where there are
// some, and else by what it says of itself. A parcel without one is fine.
func (p *Parcel) Fits(keys []PublicKey) error {
	if p.Signature == nil {
		return nil
	}
	if len(keys) > 0 {
		_, err := OfKeys(keys, false).Decide(Anywhere, p.Statement, p.Signature)
		return err
	}
	s, err := ParseSignature(p.Signature)
	if err != nil {
		return err
	}
	return s.Fits(p.Statement)
}

// seal makes the manifest.
func (p *Parcel) seal(ctx context.Context) error {
	archive, err := describe(p.archive)
	if err != nil {
		return fmt.Errorf("share.Pack: %w", err)
	}
	p.layers = []ocispec.Descriptor{archive}
	if p.Signature != nil {
		p.layers = append(p.layers, content.NewDescriptorFromBytes(SignatureType, p.Signature))
	}
	kept := memory.New()
	p.desc, err = oras.PackManifest(ctx, kept, oras.PackManifestVersion1_1, ArtifactType, oras.PackManifestOptions{
		Layers: p.layers,
		ManifestAnnotations: map[string]string{
			ocispec.AnnotationCreated:     created,
			ocispec.AnnotationTitle:       string(p.ID),
			ocispec.AnnotationVersion:     p.Version,
			ocispec.AnnotationDescription: p.Description,
			AnnotationDigest:              p.Digest,
			AnnotationType:                string(p.Runner),
		},
	})
	if err != nil {
		return fmt.Errorf("share.Pack: the manifest: %w", err)
	}
	r, err := kept.Fetch(ctx, p.desc)
	if err != nil {
		return fmt.Errorf("share.Pack: the manifest: %w", err)
	}
	defer r.Close()
	if p.manifest, err = io.ReadAll(r); err != nil {
		return fmt.Errorf("share.Pack: the manifest: %w", err)
	}
	// Nobody else holds the artifact type in a descriptor against anything.
	p.desc = ocispec.Descriptor{MediaType: p.desc.MediaType, Digest: p.desc.Digest, Size: p.desc.Size}
	return nil
}

// describe hashes the archive.
func describe(archive string) (ocispec.Descriptor, error) {
	f, err := os.Open(archive)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer f.Close()
	h := ocispec.DescriptorEmptyJSON.Digest.Algorithm().Digester() // SHA-256
	n, err := io.Copy(h.Hash(), f)
	return ocispec.Descriptor{MediaType: ArchiveType, Digest: h.Digest(), Size: n}, err
}

// blob gives the content of a layer.
func (p *Parcel) blob(i int) (io.ReadCloser, error) {
	if i == 0 {
		return os.Open(p.archive)
	}
	return io.NopCloser(bytes.NewReader(p.Signature)), nil
}

// config is the blob of the empty config, which every artifact has.
func config() (ocispec.Descriptor, []byte) {
	d := ocispec.DescriptorEmptyJSON
	return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, d.Data
}

// readManifest makes a parcel, without what is in the layers, of a stranger's manifest.
func (c *Carrier) readManifest(b []byte) (*Parcel, error) {
	if err := plainJSON(b, manifestKeys); err != nil {
		return nil, malformed("the artifact's manifest is not valid JSON: %v", err)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, malformed("the artifact's manifest is not an OCI manifest: %v", err)
	}
	switch {
	case m.SchemaVersion != 2 || m.MediaType != ocispec.MediaTypeImageManifest:
		return nil, malformed("the artifact has a manifest of type %q; skills have %s", m.MediaType, ocispec.MediaTypeImageManifest)
	case m.ArtifactType != ArtifactType:
		return nil, malformed("not a skill: the artifact has the type %q, want %s", firstOf(m.ArtifactType, m.Config.MediaType), ArtifactType)
	case m.Subject != nil || m.Config.Digest != ocispec.DescriptorEmptyJSON.Digest:
		return nil, malformed("the artifact has a subject or config, which skills do not have")
	case len(m.Layers) == 0 || len(m.Layers) > 2:
		return nil, malformed("the artifact has %d layers; a skill has an archive and an optional signature", len(m.Layers))
	}
	for i, want := range []struct {
		mediaType string
		most      int64
	}{{ArchiveType, c.o.MaxArchive}, {SignatureType, MaxSignature}}[:len(m.Layers)] {
		l := &m.Layers[i]
		switch {
		case l.MediaType != want.mediaType:
			return nil, malformed("layer %d of the artifact has the type %q, want %s", i, l.MediaType, want.mediaType)
		case !sha256Digest.MatchString(string(l.Digest)) || l.Size <= 0 || len(l.URLs) > 0 || len(l.Data) > 0:
			return nil, malformed("layer %d of the artifact has no SHA-256 digest or size, or a foreign address", i)
		case l.Size > want.most:
			return nil, &skill.Error{Op: "share.Fetch", Code: skill.PayloadTooLarge, Message: fmt.Sprintf("layer %d of the artifact is too large: %d bytes, the limit is %d", i, l.Size, want.most)}
		}
	}
	a := m.Annotations
	id, err := skill.ParseID(a[ocispec.AnnotationTitle])
	s := Statement{ID: id, Version: a[ocispec.AnnotationVersion], Digest: a[AnnotationDigest]}
	if err != nil || !Version(s.Version) || !sha256Digest.MatchString(s.Digest) {
		return nil, malformed("the artifact does not name its skill: the annotations %s, %s and %s are required", ocispec.AnnotationTitle, ocispec.AnnotationVersion, AnnotationDigest)
	}
	return &Parcel{
		Statement: s, Description: skill.CleanText(a[ocispec.AnnotationDescription], 1024), Runner: skill.Kind(skill.CleanText(a[AnnotationType], 40)),
		manifest: b, layers: m.Layers,
	}, nil
}
