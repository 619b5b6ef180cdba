package share

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// The bounds of a repository's archive.
const (
	maxRepository = 128 << 20 // bytes, compressed
	maxUnzipped   = 1 << 30
	maxMembers    = 100_000
	maxName       = 1024 // bytes of the path of a SKILL.md; others are not looked at
)

// skillFile makes a folder an Agent Skill.
const skillFile = "SKILL.md"

// ofRepository fetches a repository and returns the skills in it, each named after its folder.
func (c *Carrier) ofRepository(ctx context.Context, r *Remote, o Origin, staging string) ([]offer, error) {
	ref := o.ref
	if ref == "" {
		ref = "HEAD"
	}
	f, err := os.CreateTemp(staging, "repository-")
	if err != nil {
		return nil, hostFault(err)
	}
	defer f.Close()
	if _, err := c.download(ctx, r, o.server, o.server+"/"+o.repository+"/archive/"+ref+".tar.gz", maxRepository, f); err != nil {
		return nil, err
	}
	folders, commit, err := skillFolders(ctx, f)
	if err != nil {
		return nil, err
	}
	if commit != "" {
		o.ref = commit
	}
	var found []offer
	for _, folder := range folders {
		if o.folder != "" && folder != o.folder && !strings.HasPrefix(folder, o.folder+"/") {
			continue
		}
		if len(found) == maxBundled {
			return nil, tooManySkills(o)
		}
		at := o
		at.folder = folder
		name := path.Base(folder)
		if folder == "" {
			name = path.Base(o.repository)
		}
		found = append(found, offer{name: name, from: at, fetch: func(w io.Writer) error { return packMember(ctx, f.Name(), folder, w) }})
	}
	return found, nil
}

// skillFolders returns the folders of a repository that have a SKILL.md, and the commit. A SKILL.md in the folder of
// another skill is a file of that skill.
func skillFolders(ctx context.Context, f *os.File) (folders []string, commit string, err error) {
	all := map[string]bool{}
	err = members(ctx, f, func(h *tar.Header, name string, _ io.Reader) error {
		if h.Typeflag == tar.TypeXGlobalHeader {
			if c := h.PAXRecords["comment"]; refName.MatchString(c) {
				commit = c
			}
		} else if h.Typeflag == tar.TypeReg && path.Base(name) == skillFile && len(name) <= maxName {
			all[path.Dir(name)] = true
		}
		return nil
	})
	for folder := range all {
		outer := folder
		for outer != "." && outer != "/" && !all[path.Dir(outer)] {
			outer = path.Dir(outer)
		}
		if outer == "." || outer == "/" {
			if folder == "." {
				folder = ""
			}
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders, commit, err
}

// packMember writes a folder of a repository as a tar.gz. Hidden files and the like are left out.
func packMember(ctx context.Context, archive, folder string, w io.Writer) error {
	f, err := os.Open(archive)
	if err != nil {
		return hostFault(err)
	}
	defer f.Close()
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	err = members(ctx, f, func(h *tar.Header, name string, r io.Reader) error {
		if folder != "" {
			var within bool
			if name, within = strings.CutPrefix(name, folder+"/"); !within {
				return nil
			}
		}
		if h.Typeflag == tar.TypeXGlobalHeader || h.Typeflag == tar.TypeDir || fs.ValidPath(name) && !travels(name) {
			return nil
		}
		// Links, invalid names and the like go along, so that admission refuses them.
		if err := t.WriteHeader(&tar.Header{Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Size: h.Size, Mode: 0o644}); err != nil {
			return malformed("the repository has the file %s, which cannot be packed: %v", name, err)
		}
		_, err := io.Copy(t, r)
		return err
	})
	return errors.Join(err, t.Close(), z.Close())
}

// members calls do with each entry of a repository's archive, whose name is without the outermost folder.
func members(ctx context.Context, f *os.File, do func(h *tar.Header, name string, r io.Reader) error) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return hostFault(err)
	}
	z, err := gzip.NewReader(&stoppable{ctx, f})
	if err != nil {
		return malformed("the repository's archive is not a tar.gz: %v", err)
	}
	limited := &io.LimitedReader{R: z, N: maxUnzipped}
	t := tar.NewReader(limited)
	for n := 0; ; n++ {
		h, err := t.Next()
		switch {
		case ctx.Err() != nil:
			return told(ctx, "", ctx.Err())
		case limited.N == 0 || n >= maxMembers: // before the end, which the bound may look like
			return &skill.Error{Op: "share.Add", Code: skill.PayloadTooLarge, Message: fmt.Sprintf("the repository is too large: more than %d bytes or %d files", maxUnzipped, maxMembers)}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return malformed("the repository's archive is damaged or cut off: %v", err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		if err := do(h, name, t); err != nil {
			if ctx.Err() != nil {
				return told(ctx, "", ctx.Err())
			}
			return err
		}
	}
}

// packText writes a tar.gz of a SKILL.md alone.
func packText(w io.Writer, text []byte) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: skillFile, Size: int64(len(text)), Mode: 0o644})
	if err == nil {
		_, err = t.Write(text)
	}
	return errors.Join(err, t.Close(), z.Close())
}
