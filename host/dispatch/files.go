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

// Files finds files that calls name by reference.
type Files interface {
	// File returns an uploaded file, as a path on this host, or an artifact of an execution that
	// the principal may read, and its size in bytes. The error is a *skill.Error.
	File(ctx context.Context, p skill.Principal, r *skill.FileRef) (skill.File, int64, error)
}

const (
	// maxFiles is the maximum number of files in a request.
	maxFiles = 100
	// maxFileName is the maximum length of a file name in bytes.
	maxFileName = 255
	// maxInMemory is the maximum size of a call's inline files and artifacts in bytes. Uploaded files are
	// read from the disk.
	maxInMemory = 64 << 20
)

// checkFiles validates the names and sources of the request's files and its workspace. program is the file
// name of the code; no file may have it.
func (c *call) checkFiles(program string) error {
	refs := c.fileRefs
	switch {
	case len(refs) > maxFiles && c.again == nil: // a replay also names the files of the workspace
		return invalidFile("files", fmt.Sprintf("has more than %d files", maxFiles))
	case c.again != nil:
		c.workspaceRef = skill.WorkspaceRef{}
	case c.workspaceRef.ID != "" && !skill.ValidWorkspace(c.workspaceRef.ID):
		return invalidFile("workspace", "is invalid; use 1 to 64 of a-z A-Z 0-9 _ -")
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
			return invalidFile(field, "has an invalid name; use a relative path of at most 255 bytes, such as data/in.csv")
		case slices.Contains(names, f.Name):
			return invalidFile(field, "has the same name as another file or the code")
		case sources != 1 || (f.ExecutionID == "") != (f.Artifact == ""):
			return invalidFile(field, "must have exactly one source: text, base64, id, or execution_id with artifact")
		}
		names = append(names, f.Name)
	}
	return nil
}

func invalidFile(field, problem string) error {
	return &skill.Error{
		Op: "dispatch.files", Code: skill.InvalidArgument, Subject: field, Message: field + " " + problem,
		Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": problem, "expected": "a file with a unique name and one source"}}},
	}
}

// withFiles resolves the files of a request. It runs after the quotas are checked, and before the call is
// recorded, because the record contains the digests.
func (d *Dispatcher) withFiles(next handler) handler {
	return func(ctx context.Context, c *call) error {
		room := int64(maxInMemory)
		for i := range c.fileRefs {
			r := &c.fileRefs[i]
			if c.script != nil && c.again == nil && c.replacesCode(r.Name) {
				return invalidFile(fmt.Sprintf("/files/%d", i), "has the name of a file or folder of the skill, or is code; scripts only get data")
			}
			file, size, err := d.fileOf(ctx, c.principal, r)
			if err != nil {
				return err
			}
			info := records.FileInfo{Name: r.Name, Size: size, SHA256: r.ID}
			if file.Path == "" {
				if room -= size; room < 0 {
					return &skill.Error{
						Op: "dispatch.files", Code: skill.PayloadTooLarge, Subject: "files",
						Message: fmt.Sprintf("inline files and artifacts of a call must not exceed %d bytes in total; upload large files with POST /files and name them by id", maxInMemory),
					}
				}
				sum := sha256.Sum256(file.Data)
				info.SHA256 = hex.EncodeToString(sum[:])
			}
			file.Name = r.Name
			c.files, c.fileInfos = append(c.files, file), append(c.fileInfos, info)
		}
		if err := d.withAgentSkills(ctx, c); err != nil {
			return err
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
			return f, 0, invalidFile("files", "contain invalid base64: "+skill.CleanText(r.Name, 80))
		}
	case d.o.Files == nil:
		return f, 0, &skill.Error{Op: "dispatch.files", Code: skill.NotFound, Subject: "files", Message: "files by reference are not supported by this host"}
	default:
		return d.o.Files.File(ctx, p, r)
	}
	return f, int64(len(f.Data)), nil
}
