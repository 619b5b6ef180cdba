package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Files is where the door finds files that calls name and do not bring along.
type Files interface {
	// File gives a file that was uploaded, as a path on this host, or an artifact of an
	// execution that the caller may see. The error is a *skill.Error.
	File(ctx context.Context, p skill.Principal, r *skill.FileRef) (skill.File, int64, error)
}

const (
	// maxFiles is how many files a call may name.
	maxFiles = 100
	// maxFileName is the length of a name in bytes.
	maxFileName = 255
	// maxInMemory is what the files of a call may take in the host's memory: those that were
	// uploaded take none.
	maxInMemory = 64 << 20
)

// checkFiles looks at the names of a call's files, of which program is one besides, and at what they say of
// their content.
func (c *call) checkFiles(program string) error {
	refs := c.refs
	switch {
	case len(refs) > maxFiles && c.again == nil: // a replay has those of a workspace besides
		return wrongFile("files", fmt.Sprintf("has more than %d files", maxFiles))
	case c.again != nil:
		c.shares = skill.WorkspaceRef{}
	case c.shares.ID != "" && !skill.ValidWorkspace(c.shares.ID):
		return wrongFile("workspace", "is invalid; use 1 to 64 of a-z A-Z 0-9 _ -")
	}
	names := []string{program}
	for i := range refs {
		f := &refs[i]
		field := fmt.Sprintf("/files/%d", i)
		sources := 0
		for _, there := range []bool{f.Text != nil, f.Base64 != nil, f.ID != "", f.ExecutionID != ""} {
			if there {
				sources++
			}
		}
		switch {
		case len(f.Name) > maxFileName || !fs.ValidPath(f.Name) || f.Name == "." || strings.ContainsAny(f.Name, "\\\x00"):
			return wrongFile(field, "has a name that leaves the working folder, or is too long; use one such as data/in.csv")
		case slices.Contains(names, f.Name):
			return wrongFile(field, "has the name of another file, or of the code")
		case sources != 1 || (f.ExecutionID == "") != (f.Artifact == ""):
			return wrongFile(field, "must have one of text, base64 or id, or both execution_id and artifact")
		}
		names = append(names, f.Name)
	}
	return nil
}

func wrongFile(field, problem string) error {
	return &skill.Error{
		Op: "dispatch.files", Code: skill.InvalidArgument, Subject: field, Message: field + " " + problem,
		Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": problem, "expected": "a file with a name of its own, and one source"}}},
	}
}

// brought has the files at hand that a call names. It is within the quotas of its caller, and before
// the record, which has their digests.
func (d *Dispatcher) brought(next handler) handler {
	return func(ctx context.Context, c *call) error {
		room := int64(maxInMemory)
		for i := range c.refs {
			r := &c.refs[i]
			file, size, err := d.fileOf(ctx, c.principal, r)
			if err != nil {
				return err
			}
			info := records.FileInfo{Name: r.Name, Size: size, SHA256: r.ID}
			if file.Path == "" {
				if room -= size; room < 0 {
					return &skill.Error{
						Op: "dispatch.files", Code: skill.PayloadTooLarge, Subject: "files",
						Message: fmt.Sprintf("the files of the call take more than %d bytes; upload large ones by POST /files and name them by id", maxInMemory),
					}
				}
				sum := sha256.Sum256(file.Data)
				info.SHA256 = hex.EncodeToString(sum[:])
			}
			file.Name = r.Name
			c.files, c.infos = append(c.files, file), append(c.infos, info)
		}
		return next(ctx, c)
	}
}

func (d *Dispatcher) fileOf(ctx context.Context, p skill.Principal, r *skill.FileRef) (f skill.File, size int64, err error) {
	switch {
	case r.Text != nil:
		f.Data = []byte(*r.Text)
	case r.Base64 != nil:
		if f.Data, err = base64.StdEncoding.DecodeString(*r.Base64); err != nil {
			return f, 0, wrongFile("files", "has base64 that cannot be decoded: "+skill.CleanText(r.Name, 80))
		}
	case d.o.Files == nil:
		return f, 0, &skill.Error{Op: "dispatch.files", Code: skill.NotFound, Subject: "files", Message: "this host keeps no files"}
	default:
		return d.o.Files.File(ctx, p, r)
	}
	return f, int64(len(f.Data)), nil
}
