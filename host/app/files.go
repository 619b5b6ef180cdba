package app

import (
	"context"
	"path/filepath"

	"openskill/host/app/config"
	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// filesDir is the folder for copies of a tenant's files. Only the tenant's workers may read it.
func filesDir(s *config.Settings, tenant string) string {
	path, err := filepath.Abs(filepath.Join(s.StateDir, "files", catalogue.Folder(tenant))) // a worker has another working folder
	if err != nil {
		return ""
	}
	return path
}

// Artifact returns an artifact of an execution that the principal may read.
func (h *Host) Artifact(ctx context.Context, p skill.Principal, executionID, name string) ([]byte, error) {
	return h.kept.executions.File(ctx, p, executionID, name)
}

// callFiles resolves file references of calls.
type callFiles struct{ *kept }

// File implements [dispatch.Files].
func (f callFiles) File(ctx context.Context, p skill.Principal, r *skill.FileRef) (skill.File, int64, error) {
	if r.ID != "" {
		path, info, err := f.files.Path(ctx, p, r.ID)
		if err != nil {
			return skill.File{}, 0, err
		}
		return skill.File{Path: path}, info.Size, nil
	}
	data, err := f.executions.File(ctx, p, r.ExecutionID, r.Artifact)
	return skill.File{Data: data}, int64(len(data)), err
}
