package records

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// Limits of workspaces.
const (
	mostWorkspaceFiles = 1000
	mostWorkspaceBytes = 256 << 20
	mostWorkspaces     = 1000 // per principal
)

// Workspaces stores working folders that calls of a principal share. A workspace is a list of names and digests of
// [Files], so forks and calls copy no content. On one host, one call at a time uses a workspace. Between hosts, Save
// detects conflicts by the revision. Errors are *skill.Error. Workspaces is safe for concurrent use.
type Workspaces struct {
	files *Files
	turns turns
}

// ownKey names what belongs to a principal.
type ownKey struct{ tenant, principal, id string }

// NewWorkspaces returns Workspaces that store their content in files.
func NewWorkspaces(files *Files) *Workspaces {
	return &Workspaces{files: files}
}

func keyOf(p skill.Principal, id string) ownKey {
	return ownKey{p.Tenant, store.Plain(p.ID), store.Plain(id)}
}

// Enter waits until no other call of this host uses the workspace. It returns the workspace, which is empty if it is
// new, and extends its expiry. The caller must call leave.
func (w *Workspaces) Enter(ctx context.Context, p skill.Principal, id string, wait time.Duration) (s *skill.Workspace, leave func(), err error) {
	if !skill.ValidWorkspace(id) {
		return nil, nil, &skill.Error{Op: "workspaces.Enter", Code: skill.InvalidArgument, Subject: "workspace", Message: "invalid workspace id; use 1 to 64 of a-z, A-Z, 0-9, _ and -"}
	}
	k := keyOf(p, id)
	leave, ok := w.turns.enter(ctx, k, wait)
	if !ok {
		return nil, nil, &skill.Error{Op: "workspaces.Enter", Code: skill.Conflict, Subject: "workspace", Message: "another call uses the workspace; retry", Err: context.Cause(ctx)}
	}
	if s, err = w.find(ctx, k); s == nil && err == nil {
		return &skill.Workspace{ID: id, Files: []skill.WorkspaceFile{}}, leave, nil
	}
	if err == nil {
		err = w.touch(ctx, k, s)
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return s, leave, nil
}

// WorkspaceChange contains the changes of a call to a workspace.
type WorkspaceChange struct {
	Written []skill.Artifact      // created or replaced files, with content
	Kept    []skill.WorkspaceFile // created or replaced files whose content [Files] has
	Removed []string
}

// Save applies all changes to the workspace s, as [Workspaces.Enter] returned it, or none.
func (w *Workspaces) Save(ctx context.Context, p skill.Principal, s *skill.Workspace, c *WorkspaceChange) error {
	if len(c.Written)+len(c.Kept)+len(c.Removed) == 0 && s.Revision > 0 {
		return nil
	}
	names := map[string]skill.WorkspaceFile{}
	for _, f := range s.Files {
		names[f.Name] = f
	}
	for _, name := range c.Removed {
		delete(names, name)
	}
	for _, f := range c.Kept {
		names[f.Name] = f
	}
	for i := range c.Written {
		a := &c.Written[i]
		names[a.Name] = skill.WorkspaceFile{Name: a.Name, Size: int64(len(a.Data))}
	}
	var size int64
	for name, f := range names {
		size += f.Size
		for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if _, taken := names[name[:at]]; taken {
				return &skill.Error{
					Op: "workspaces.Save", Code: skill.Conflict, Subject: "workspace",
					Message: fmt.Sprintf("the workspace is unchanged: %s would be a file and a folder", skill.CleanText(name[:at], 80)),
				}
			}
		}
	}
	if len(names) > mostWorkspaceFiles || size > mostWorkspaceBytes {
		return &skill.Error{
			Op: "workspaces.Save", Code: skill.PayloadTooLarge, Subject: "workspace",
			Message: fmt.Sprintf("the workspace would exceed %d files or %d bytes and is unchanged; remove some files", mostWorkspaceFiles, mostWorkspaceBytes),
		}
	}
	for i := range c.Written {
		a := &c.Written[i]
		info, err := w.files.Put(ctx, p, a.Name, bytes.NewReader(a.Data))
		if err != nil {
			return err
		}
		names[a.Name] = skill.WorkspaceFile{Name: a.Name, ID: info.ID, Size: info.Size}
	}
	next := &skill.Workspace{ID: s.ID, Size: size, Revision: s.Revision, Files: make([]skill.WorkspaceFile, 0, len(names))}
	for _, f := range names {
		next.Files = append(next.Files, f)
	}
	slices.SortFunc(next.Files, func(a, b skill.WorkspaceFile) int { return strings.Compare(a.Name, b.Name) })
	return w.write(ctx, keyOf(p, s.ID), next)
}

// write replaces revision next.Revision of a workspace; 0 creates it.
func (w *Workspaces) write(ctx context.Context, k ownKey, next *skill.Workspace) error {
	now := w.files.o.Now().UTC().Truncate(time.Microsecond)
	list, err := json.Marshal(next.Files)
	if err != nil {
		return w.files.failed(err)
	}
	db, until := w.files.o.DB, now.Add(w.files.o.Keep).UnixMicro()
	conflict := &skill.Error{Op: "workspaces.Save", Code: skill.Conflict, Subject: "workspace", Message: "the workspace was changed by another call and is unchanged by this one; retry"}
	return db.InTurn(ctx, k.tenant, func() error {
		return w.files.unavailableOr(db.InTx(ctx, func(tx *sql.Tx) error {
			var res sql.Result
			if next.Revision == 0 {
				conflict.Message = fmt.Sprintf("another call has created the workspace, or you have too many: at most %d; retry, or delete some", mostWorkspaces)
				if _, err := tx.ExecContext(ctx, "DELETE FROM workspaces WHERE tenant = $1 AND principal = $2 AND id = $3 AND expires_at <= $4", k.tenant, k.principal, k.id, now.UnixMicro()); err != nil {
					return err
				}
				res, err = tx.ExecContext(ctx, "INSERT INTO workspaces (tenant, principal, id, files, bytes, revision, created_at, updated_at, expires_at)"+
					" SELECT $1, $2, $3, $4, CAST($5 AS BIGINT), 1, CAST($6 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT)"+
					" WHERE (SELECT COUNT(*) FROM workspaces WHERE tenant = $1 AND principal = $2) < $8 ON CONFLICT (tenant, principal, id) DO NOTHING",
					k.tenant, k.principal, k.id, string(list), next.Size, now.UnixMicro(), until, mostWorkspaces)
			} else {
				res, err = tx.ExecContext(ctx, "UPDATE workspaces SET files = $1, bytes = $2, revision = revision + 1, updated_at = $3, expires_at = $4 WHERE tenant = $5 AND principal = $6 AND id = $7 AND revision = $8",
					string(list), next.Size, now.UnixMicro(), until, k.tenant, k.principal, k.id, next.Revision)
			}
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil || n == 0 {
				if err == nil {
					err = conflict
				}
				return err
			}
			if err := hold(ctx, tx, k.tenant, next.Files, until); err != nil {
				return err
			}
			return there(ctx, tx, k.tenant, next.Files)
		}))
	})
}

// together is the maximum number of files in one SQL statement.
const together = 500

// hold extends the expiry of a workspace's files to until.
func hold(ctx context.Context, tx *sql.Tx, tenant string, files []skill.WorkspaceFile, until int64) error {
	for some := range slices.Chunk(files, together) {
		args := []any{until, tenant}
		for _, f := range some {
			args = append(args, f.ID)
		}
		if _, err := tx.ExecContext(ctx, "UPDATE files SET expires_at = $1 WHERE tenant = $2 AND expires_at < $1 AND digest IN ("+store.List(3, len(some))+")", args...); err != nil {
			return err
		}
	}
	return nil
}

// there returns an error if one of the files was deleted.
func there(ctx context.Context, tx *sql.Tx, tenant string, files []skill.WorkspaceFile) error {
	digests := make([]string, len(files))
	for i, f := range files {
		digests[i] = f.ID
	}
	slices.Sort(digests)
	digests = slices.Compact(digests)
	for some := range slices.Chunk(digests, together) {
		args := []any{tenant}
		for _, id := range some {
			args = append(args, id)
		}
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM files WHERE tenant = $1 AND digest IN ("+store.List(2, len(some))+")", args...).Scan(&n); err != nil {
			return err
		}
		if n < len(some) {
			return &skill.Error{Op: "workspaces.Save", Code: skill.Conflict, Subject: "workspace", Message: "a file of the workspace was deleted during the call; the workspace is unchanged; retry"}
		}
	}
	return nil
}

// touch extends the expiry of a workspace, at most once in a quarter of the retention time.
func (w *Workspaces) touch(ctx context.Context, k ownKey, s *skill.Workspace) error {
	until := w.files.o.Now().Add(w.files.o.Keep)
	if until.Sub(s.ExpiresAt) < w.files.o.Keep/4 {
		return nil
	}
	return w.files.unavailableOr(w.files.o.DB.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE workspaces SET expires_at = $1 WHERE tenant = $2 AND principal = $3 AND id = $4", until.UnixMicro(), k.tenant, k.principal, k.id); err != nil {
			return err
		}
		return hold(ctx, tx, k.tenant, s.Files, until.UnixMicro())
	}))
}

const workspaceColumns = "id, files, bytes, revision, created_at, updated_at, expires_at"

func scanWorkspace(rows *sql.Rows) (*skill.Workspace, error) {
	s := &skill.Workspace{}
	var files string
	var created, updated, expires int64
	if err := rows.Scan(&s.ID, &files, &s.Size, &s.Revision, &created, &updated, &expires); err != nil {
		return nil, err
	}
	s.CreatedAt, s.UpdatedAt, s.ExpiresAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC(), time.UnixMicro(expires).UTC()
	return s, json.Unmarshal([]byte(files), &s.Files)
}

// find returns a workspace, or nil if it does not exist.
func (w *Workspaces) find(ctx context.Context, k ownKey) (*skill.Workspace, error) {
	list, err := store.All(ctx, w.files.o.DB.Read, scanWorkspace, "SELECT "+workspaceColumns+" FROM workspaces WHERE tenant = $1 AND principal = $2 AND id = $3 AND expires_at > $4",
		k.tenant, k.principal, k.id, w.files.o.Now().UnixMicro())
	if err != nil || len(list) == 0 {
		return nil, w.files.unavailableOr(err)
	}
	return list[0], nil
}

// Get returns a workspace of the principal.
func (w *Workspaces) Get(ctx context.Context, p skill.Principal, id string) (*skill.Workspace, error) {
	s, err := w.find(ctx, keyOf(p, id))
	if err == nil && s == nil {
		err = &skill.Error{Op: "workspaces.Get", Code: skill.NotFound, Subject: skill.CleanText(id, 64), Message: "workspace not found; the first call that names a workspace creates it"}
	}
	return s, err
}

// List returns a page of the principal's workspaces in the order of their ids, and the cursor of the next page or "".
func (w *Workspaces) List(ctx context.Context, p skill.Principal, cursor string, limit int) (page []*skill.Workspace, next string, err error) {
	k := keyOf(p, cursor)
	page, err = store.All(ctx, w.files.o.DB.Read, scanWorkspace, "SELECT "+workspaceColumns+" FROM workspaces WHERE tenant = $1 AND principal = $2 AND id > $3 AND expires_at > $4 ORDER BY id LIMIT $5",
		k.tenant, k.principal, k.id, w.files.o.Now().UnixMicro(), limit+1)
	if err != nil {
		return nil, "", w.files.unavailableOr(err)
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].ID
	}
	return page, next, nil
}

// Delete removes a workspace. Its files expire.
func (w *Workspaces) Delete(ctx context.Context, p skill.Principal, id string) error {
	s, leave, err := w.Enter(ctx, p, id, maxTurn)
	if err != nil {
		return err
	}
	defer leave()
	if s.Revision == 0 {
		_, err := w.Get(ctx, p, id)
		return err
	}
	k := keyOf(p, id)
	_, err = w.files.o.DB.ExecInTurn(ctx, k.tenant, "DELETE FROM workspaces WHERE tenant = $1 AND principal = $2 AND id = $3", k.tenant, k.principal, k.id)
	return w.files.unavailableOr(err)
}

// Fork creates the workspace to with the files of the workspace id.
func (w *Workspaces) Fork(ctx context.Context, p skill.Principal, id, to string) (*skill.Workspace, error) {
	from, err := w.Get(ctx, p, id)
	if err != nil {
		return nil, err
	}
	s, leave, err := w.Enter(ctx, p, to, maxTurn)
	if err != nil {
		return nil, err
	}
	defer leave()
	if s.Revision > 0 {
		return nil, &skill.Error{Op: "workspaces.Fork", Code: skill.Conflict, Subject: to, Message: "the workspace already exists; use another id, or delete it first"}
	}
	if err := w.write(ctx, keyOf(p, to), &skill.Workspace{ID: to, Files: from.Files, Size: from.Size}); err != nil {
		return nil, err
	}
	return w.Get(ctx, p, to)
}
