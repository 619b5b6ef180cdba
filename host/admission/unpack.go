package admission

import (
	"context"
	"errors"
	"io"
	"os"

	"openskill/sdk/skill"
)

// Limits bound an archive of [Unpack]. All of them are set.
type Limits struct {
	Archive int64 // bytes of the archive
	Bytes   int64 // of all files together
	Files   int   // and as many folders
}

// What Unpack holds archives to beside its Limits, as uploads are.
const (
	unpackRatio = 250
	unpackDepth = 32
	unpackName  = 255
	unpackPath  = 1024
)

// Unpack unpacks a zip or a gzipped tar into an empty folder, by the rules that hold for
// uploads, and lists its files, which are read-only. The error is a *skill.Error: of code
// ARCHIVE_REJECTED where the archive is at fault.
func Unpack(ctx context.Context, archive *os.File, folder string, l Limits) ([]File, error) {
	return unpackBy(ctx, archive, folder, &Options{
		MaxArchive: l.Archive, MaxUnpacked: l.Bytes, MaxFiles: l.Files, MaxRatio: unpackRatio,
		MaxDepth: unpackDepth, MaxName: unpackName, MaxPath: unpackPath,
	})
}

// unpackBy is [Unpack] by these options.
func unpackBy(ctx context.Context, archive *os.File, folder string, o *Options) ([]File, error) {
	t, err := newTree(ctx, o, folder)
	if err == nil {
		defer t.close()
		err = t.unpack(archive)
	}
	switch r, ok := errors.AsType[*refusalError](err); {
	case err == nil:
		return t.files, nil
	case ok:
		return nil, &skill.Error{Op: "admission.Unpack", Code: skill.ArchiveRejected, Message: skill.CleanText(r.Error(), skill.MaxMessage)}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, &skill.Error{Op: "admission.Unpack", Code: skill.Internal, Message: "cannot unpack the archive: " + skill.CleanText(err.Error(), 200), Err: err}
}

// unpack tells by its first bytes what an archive is.
func (t *tree) unpack(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size > t.o.MaxArchive {
		return reject("", "the archive has %d bytes, the limit is %d", size, t.o.MaxArchive)
	}
	t.sent = size
	head := make([]byte, 2)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch string(head[:n]) {
	case "PK":
		return t.unzip(f, size)
	case "\x1f\x8b":
		return t.untar(f, size)
	}
	return reject("", "the file is neither a zip nor a tar.gz")
}
