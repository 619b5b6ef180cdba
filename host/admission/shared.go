package admission

import (
	"context"
	"io"
	"os"
)

// Pack writes an admitted folder as a zip for other hosts, which take it in by
// [Admission.Readmit]: the same bytes for the same files. It takes whatever this
// Admission admits.
func (a *Admission) Pack(w io.Writer, folder string) error {
	return pack(w, folder, nil, a.o.MaxFiles, a.o.MaxUnpacked)
}

// entryCost is more than a zip takes for one entry beside its bytes, twice its name
// included.
const entryCost = 256

// Readmit is [Admission.Admit] for what another host has admitted and packed. What holds
// for skills holds, and this host's own engine looks at the module; what bounds an
// archive by its size on the way does not, because the sender packed it another way.
func (a *Admission) Readmit(ctx context.Context, archive *os.File, owner, staging string) (*Admitted, error) {
	o := a.o
	o.MaxRatio = maxRatio
	o.MaxArchive = o.MaxUnpacked + o.MaxUnpacked/1000 + int64(o.MaxFiles)*int64(entryCost+2*o.MaxPath)
	return (&Admission{o}).Admit(ctx, Source{Archive: archive, Owner: owner}, staging)
}

// PackFolder writes a folder of packages as a zip, which other hosts unpack by [UnpackFolder]: the
// same bytes for the same files. Of l, Bytes and Files are looked at.
func PackFolder(w io.Writer, folder string, l Limits) error {
	return pack(w, folder, nil, l.Files, l.Bytes)
}

// UnpackFolder is [Unpack] for what another host has packed of archives that it has unpacked: what
// bounds an archive by its size, or a path by its depth, has been looked at there.
func UnpackFolder(ctx context.Context, archive *os.File, folder string, l Limits) ([]File, error) {
	return unpackBy(ctx, archive, folder, &Options{
		MaxArchive: l.Bytes + l.Bytes/1000 + int64(l.Files)*int64(entryCost+2*sharedPath), MaxUnpacked: l.Bytes, MaxFiles: l.Files, MaxRatio: maxRatio,
		MaxDepth: sharedPath, MaxName: unpackName, MaxPath: sharedPath,
	})
}

// sharedPath is the longest path of what hosts pack for each other, in bytes: as long as systems
// take one.
const sharedPath = 4096

// maxRatio is more than deflate can do.
const maxRatio = 1100
