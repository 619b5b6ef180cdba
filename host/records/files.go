package records

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// FilesOptions configure [Files]. DB and Dir are required; zero never means "unlimited".
type FilesOptions struct {
	DB *store.DB
	// Dir returns the absolute path of the folder for local copies of a tenant's files. It is a cache: the
	// database stores the files.
	Dir func(tenant string) string

	Keep      time.Duration // how long a file is kept after its last use; 0: an hour
	MostOfOne int64         // bytes of a file; 0: [MostBytesOfFile]
	MostOfAll Room          // of a tenant; 0: 1 GiB, 10,000 files

	Log *slog.Logger     // nil: slog.Default()
	Now func() time.Time // nil: the system's clock
}

// filePart is the number of bytes of a file that one transaction writes. The database driver copies each part several
// times, so larger parts would need more memory.
const filePart = 128 << 10

// MostBytesOfFile is the default of [FilesOptions.MostOfOne].
const MostBytesOfFile = 256 << 20

// Files stores files that callers upload for their calls. The id of a file is its SHA-256; every caller of the tenant
// who knows the id may read it. Files expire after their last use. The database stores the content in parts, and each
// host that uses a file keeps a copy on its disk. Errors are *skill.Error. Files is safe for concurrent use.
type Files struct{ o FilesOptions }

// NewFiles returns Files with the options.
func NewFiles(o FilesOptions) *Files {
	or(&o.Keep, time.Hour)
	or(&o.MostOfOne, MostBytesOfFile)
	or(&o.MostOfAll.Bytes, MostBytesOfTenant)
	or(&o.MostOfAll.Items, 10_000)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Files{o}
}

// storedFile is a row of files.
type storedFile struct {
	skill.FileInfo
	content   string // key of its parts
	principal string // first uploader
}

const fileColumns = "digest, name, size, principal, content, created_at, expires_at"

func scanFile(rows *sql.Rows) (*storedFile, error) {
	f := &storedFile{}
	var created, expires int64
	err := rows.Scan(&f.ID, &f.Name, &f.Size, &f.principal, &f.content, &created, &expires)
	f.CreatedAt, f.ExpiresAt = time.UnixMicro(created).UTC(), time.UnixMicro(expires).UTC()
	return f, err
}

// Put stores the content of from as a file of the principal's tenant.
func (f *Files) Put(ctx context.Context, p skill.Principal, name string, from io.Reader) (*skill.FileInfo, error) {
	dir := f.o.Dir(p.Tenant)
	in, err := f.incoming(dir)
	if err != nil {
		return nil, err
	}
	defer in.drop()
	size, err := io.Copy(in, io.LimitReader(from, f.o.MostOfOne+1))
	switch _, own := errors.AsType[*fs.PathError](err); {
	case own:
		return nil, f.failed(err)
	case err != nil:
		return nil, err // of who sends
	case size > f.o.MostOfOne:
		return nil, &skill.Error{Op: "files.Put", Code: skill.PayloadTooLarge, Message: fmt.Sprintf("the file is too large; the limit is %d bytes", f.o.MostOfOne)}
	}
	digest := in.digest()
	now := f.o.Now().UTC().Truncate(time.Microsecond)
	name = skill.CleanText(name, 255)
	got, err := f.find(ctx, p.Tenant, digest)
	switch {
	case err == nil: // known content
		if err := f.touch(ctx, p.Tenant, got, now); err != nil {
			return nil, err
		}
	case skill.CodeOf(err) == skill.NotFound:
		got = &storedFile{skill.FileInfo{ID: digest, Name: name, Size: size, CreatedAt: now, ExpiresAt: now.Add(f.o.Keep)}, uuid.NewString(), store.Plain(p.ID)}
		if err := f.room(ctx, p.Tenant, size); err != nil {
			return nil, err
		}
		if err := f.insert(ctx, p, got, in.file); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	if err := in.keep(copyOf(dir, digest)); err != nil {
		f.o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot keep a copy of a file", slog.String("reason", err.Error())) // it is fetched where it is used
	}
	info := got.FileInfo
	return &info, nil
}

// insert writes the parts of a file, and then its row.
func (f *Files) insert(ctx context.Context, p skill.Principal, s *storedFile, from *os.File) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return f.failed(err)
	}
	db, buf := f.o.DB, make([]byte, filePart)
	for part := 0; ; part++ {
		n, err := io.ReadFull(from, buf)
		if n > 0 {
			if _, err := db.ExecInTurn(ctx, p.Tenant, "INSERT INTO file_parts (content, part, created_at, body) VALUES ($1, $2, $3, $4)", s.content, part, s.CreatedAt.UnixMicro(), buf[:n]); err != nil {
				return f.unavailable(err)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return f.failed(err)
		}
	}
	// Another upload may have filled the tenant's quota or stored the same content meanwhile. Then no row names the
	// parts, and Sweep removes them.
	n, err := db.ExecInTurn(ctx, p.Tenant, "INSERT INTO files (tenant, digest, name, size, principal, content, created_at, expires_at) SELECT $1, $2, $3, CAST($4 AS BIGINT), $5, $6, $7, $8"+
		" WHERE (SELECT COALESCE(SUM(size), 0) FROM files WHERE tenant = $1) + CAST($4 AS BIGINT) <= $9"+
		" ON CONFLICT (tenant, digest) DO UPDATE SET expires_at = excluded.expires_at",
		p.Tenant, s.ID, store.Plain(s.Name), s.Size, store.Plain(p.ID), s.content, s.CreatedAt.UnixMicro(), s.ExpiresAt.UnixMicro(), f.o.MostOfAll.Bytes)
	if err != nil {
		return f.unavailable(err)
	}
	if n == 0 {
		return f.full(p.Tenant)
	}
	return nil
}

// room returns an error if the tenant's quota does not allow another file of size bytes.
func (f *Files) room(ctx context.Context, tenant string, size int64) error {
	var bytes, items int64
	if err := f.o.DB.Read.QueryRowContext(ctx, "SELECT COALESCE(SUM(size), 0), COUNT(*) FROM files WHERE tenant = $1", tenant).Scan(&bytes, &items); err != nil {
		return f.unavailable(err)
	}
	if bytes+size > f.o.MostOfAll.Bytes || items >= f.o.MostOfAll.Items {
		return f.full(tenant)
	}
	return nil
}

func (f *Files) full(tenant string) error {
	return &skill.Error{
		Op: "files.Put", Code: skill.PayloadTooLarge, Subject: tenant,
		Message: fmt.Sprintf("the files of this tenant would exceed %d bytes or %d files; delete some, or wait until they expire", f.o.MostOfAll.Bytes, f.o.MostOfAll.Items),
	}
}

var fileID = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (f *Files) find(ctx context.Context, tenant, id string) (*storedFile, error) {
	none := &skill.Error{Op: "files.find", Code: skill.NotFound, Subject: skill.CleanText(id, 80), Message: "file not found; upload it with POST /files"}
	if !fileID.MatchString(id) {
		return nil, none
	}
	list, err := store.All(ctx, f.o.DB.Read, scanFile, "SELECT "+fileColumns+" FROM files WHERE tenant = $1 AND digest = $2 AND expires_at > $3", tenant, id, f.o.Now().UnixMicro())
	switch {
	case err != nil:
		return nil, f.unavailable(err)
	case len(list) == 0:
		return nil, none
	}
	return list[0], nil
}

// touch extends the expiry of a file, at most once in a quarter of the retention time.
func (f *Files) touch(ctx context.Context, tenant string, s *storedFile, now time.Time) error {
	if s.ExpiresAt.Sub(now) > f.o.Keep*3/4 {
		return nil
	}
	s.ExpiresAt = now.Add(f.o.Keep)
	if _, err := f.o.DB.ExecInTurn(ctx, tenant, "UPDATE files SET expires_at = $1 WHERE tenant = $2 AND digest = $3", s.ExpiresAt.UnixMicro(), tenant, s.ID); err != nil {
		return f.unavailable(err)
	}
	return nil
}

// Get returns the metadata of a file.
func (f *Files) Get(ctx context.Context, p skill.Principal, id string) (*skill.FileInfo, error) {
	s, err := f.find(ctx, p.Tenant, id)
	if err != nil {
		return nil, err
	}
	return &s.FileInfo, nil
}

// List returns a page of the principal's uploads, newest or oldest first, and the cursor of the next page or "".
func (f *Files) List(ctx context.Context, p skill.Principal, cursor string, limit int, oldest bool) (page []skill.FileInfo, next string, err error) {
	before, last, is, order := int64(math.MaxInt64), "", "<", "DESC"
	if oldest {
		before, is, order = 0, ">", "ASC"
	}
	if cursor != "" {
		at, id, ok := strings.Cut(cursor, ".")
		if before, err = strconv.ParseInt(at, 10, 64); err != nil || !ok || !fileID.MatchString(id) {
			return nil, "", &skill.Error{Op: "files.List", Code: skill.InvalidArgument, Subject: "cursor", Message: "cursor must be the next value of the previous page"}
		}
		last = id
	}
	list, err := store.All(ctx, f.o.DB.Read, scanFile, "SELECT "+fileColumns+" FROM files WHERE tenant = $1 AND principal = $2 AND expires_at > $3 AND (created_at, digest) "+is+" ($4, $5) ORDER BY created_at "+order+", digest "+order+" LIMIT $6",
		p.Tenant, store.Plain(p.ID), f.o.Now().UnixMicro(), before, last, limit+1)
	if err != nil {
		return nil, "", f.unavailable(err)
	}
	if len(list) > limit {
		list = list[:limit]
		next = fmt.Sprintf("%d.%s", list[limit-1].CreatedAt.UnixMicro(), list[limit-1].ID)
	}
	page = make([]skill.FileInfo, len(list))
	for i, s := range list {
		page[i] = s.FileInfo
	}
	return page, next, nil
}

// Delete removes a file that the principal uploaded, unless a workspace contains it.
func (f *Files) Delete(ctx context.Context, p skill.Principal, id string) error {
	s, err := f.find(ctx, p.Tenant, id)
	if err != nil {
		return err
	}
	if s.principal != store.Plain(p.ID) && !p.May(skill.ScopeHost) {
		return &skill.Error{Op: "files.Delete", Code: skill.Forbidden, Subject: id, Message: "only the uploader may delete this file; unused files expire"}
	}
	// Workspaces of other callers may contain the file, too. LIKE needs no escaping: the id is hexadecimal.
	n, err := f.o.DB.ExecInTurn(ctx, p.Tenant, "DELETE FROM files WHERE tenant = $1 AND digest = $2"+
		" AND NOT EXISTS (SELECT 1 FROM workspaces WHERE tenant = $1 AND files LIKE '%' || $2 || '%')", p.Tenant, id)
	switch {
	case err != nil:
		return f.unavailable(err)
	case n == 0:
		return &skill.Error{Op: "files.Delete", Code: skill.Conflict, Subject: id, Message: "a workspace contains this file; remove it from the workspace first"}
	}
	_ = os.Remove(copyOf(f.o.Dir(p.Tenant), id)) // which sweep does as well
	f.dropParts(ctx, p.Tenant, s.content)
	return nil
}

// Path returns the path of this host's copy of a file, which is fetched from the database if it is missing. The copy
// exists as long as the file.
func (f *Files) Path(ctx context.Context, p skill.Principal, id string) (string, *skill.FileInfo, error) {
	s, err := f.find(ctx, p.Tenant, id)
	if err != nil {
		return "", nil, err
	}
	now := f.o.Now()
	if err := f.touch(ctx, p.Tenant, s, now); err != nil {
		return "", nil, err
	}
	dir := f.o.Dir(p.Tenant)
	path := copyOf(dir, id)
	if info, err := os.Stat(path); err == nil && info.Size() == s.Size {
		if err := os.Chtimes(path, now, now); err == nil { // so that Sweep keeps it
			return path, &s.FileInfo, nil
		}
	}
	in, err := f.incoming(dir)
	if err != nil {
		return "", nil, err
	}
	defer in.drop()
	for part := 0; ; part++ {
		var body []byte
		err := f.o.DB.Read.QueryRowContext(ctx, "SELECT body FROM file_parts WHERE content = $1 AND part = $2", s.content, part).Scan(&body)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err != nil {
			return "", nil, f.unavailable(err)
		}
		if _, err := in.Write(body); err != nil {
			return "", nil, f.failed(err)
		}
	}
	if in.digest() != id {
		return "", nil, &skill.Error{Op: "files.Path", Code: skill.Internal, Err: fmt.Errorf("the content of file %s in the database does not match its digest", id)}
	}
	if err := in.keep(path); err != nil {
		return "", nil, f.failed(err)
	}
	return path, &s.FileInfo, nil
}

func copyOf(dir, id string) string { return filepath.Join(dir, id) }

// incomingPrefix is the prefix of names of incomplete copies.
const incomingPrefix = ".in-"

// incoming is a copy that is being written.
type incoming struct {
	io.Writer

	file *os.File
	sum  hash.Hash
	kept bool
}

func (f *Files) incoming(dir string) (*incoming, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, f.failed(err)
	}
	file, err := os.CreateTemp(dir, incomingPrefix)
	if err != nil {
		return nil, f.failed(err)
	}
	in := &incoming{file: file, sum: sha256.New()}
	in.Writer = io.MultiWriter(file, in.sum)
	return in, nil
}

func (in *incoming) digest() string { return hex.EncodeToString(in.sum.Sum(nil)) }

// keep moves the complete copy to path.
func (in *incoming) keep(path string) error {
	if err := in.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(in.file.Name(), path); err != nil {
		return err
	}
	in.kept = true
	return nil
}

// drop removes the copy unless keep moved it.
func (in *incoming) drop() {
	if !in.kept {
		_ = in.file.Close()
		_ = os.Remove(in.file.Name())
	}
}

// failed wraps an error of the disk, and unavailable one of the database.
func (f *Files) failed(err error) error {
	return &skill.Error{Op: "files", Code: skill.Internal, Err: err}
}

func (f *Files) unavailable(err error) error { return cannotKeep("files", err) }

func (f *Files) unavailableOr(err error) error {
	if err == nil {
		return nil
	}
	return f.unavailable(err)
}
