package records

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// A frozen session is a row, and a file with its memory, which is compressed. The row has the digest of the
// file, and names who owns the session: a file that was changed, or is another one's, is not believed.

// frozenSession is a row.
type frozenSession struct {
	HeldSession

	digest string
}

const sessionColumns = "id, language, workspace, packages, ahead, last, memory_mb, bytes, runs, fuel, seed, made, digest, created_at, used_at, expires_at"

func scanSession(rows *sql.Rows) (*frozenSession, error) {
	f := &frozenSession{}
	var fuel, created, used, expires int64
	var seed, packages, ahead string
	if err := rows.Scan(&f.ID, &f.Language, &f.Workspace, &packages, &ahead, &f.Last, &f.MemoryMB, &f.Size, &f.Runs, &fuel, &seed, &f.State.Made, &f.digest, &created, &used, &expires); err != nil {
		return nil, err
	}
	if b, err := hex.DecodeString(seed); err != nil || len(b) != len(f.State.Seed) {
		return nil, errors.New("records: the seed of a session is damaged")
	} else {
		f.State.Seed = [32]byte(b)
	}
	f.Packages, f.Ahead = names(packages), names(ahead)
	f.FuelUsed, f.Frozen, f.State.Most = uint64(max(fuel, 0)), true, MostSessionBytes
	f.CreatedAt, f.UsedAt, f.ExpiresAt = time.UnixMicro(created).UTC(), time.UnixMicro(used).UTC(), time.UnixMicro(expires).UTC()
	return f, nil
}

// names splits a list of names; it is not nil.
func names(list string) []string {
	if list == "" {
		return []string{}
	}
	return strings.Split(list, ",")
}

// findFrozen returns a frozen session; NOT_FOUND if there is none.
func (s *Sessions) findFrozen(ctx context.Context, k ownKey) (*frozenSession, error) {
	list, err := store.All(ctx, s.files.o.DB.Read, scanSession, "SELECT "+sessionColumns+" FROM sessions WHERE tenant = $1 AND principal = $2 AND id = $3 AND expires_at > $4",
		k.tenant, k.principal, k.id, s.now().UnixMicro())
	switch {
	case err != nil:
		return nil, s.files.unavailable(err)
	case len(list) == 0:
		return nil, noSession(k.id)
	}
	return list[0], nil
}

// listFrozen returns frozen sessions after the id of k.
func (s *Sessions) listFrozen(ctx context.Context, k ownKey, limit int) ([]*skill.Session, error) {
	list, err := store.All(ctx, s.files.o.DB.Read, scanSession, "SELECT "+sessionColumns+" FROM sessions WHERE tenant = $1 AND principal = $2 AND id > $3 AND expires_at > $4 ORDER BY id LIMIT $5",
		k.tenant, k.principal, k.id, s.now().UnixMicro(), limit)
	if err != nil {
		return nil, s.files.unavailable(err)
	}
	page := make([]*skill.Session, len(list))
	for i, f := range list {
		page[i] = &f.Session
	}
	return page, nil
}

func (s *Sessions) countFrozen(ctx context.Context, k ownKey) (n int, err error) {
	err = s.files.o.DB.Read.QueryRowContext(ctx, "SELECT COUNT(*) FROM sessions WHERE tenant = $1 AND principal = $2 AND expires_at > $3", k.tenant, k.principal, s.now().UnixMicro()).Scan(&n)
	return n, s.files.unavailableOr(err)
}

func (s *Sessions) deleteFrozen(ctx context.Context, k ownKey) (int, error) {
	n, err := s.files.o.DB.ExecInTurn(ctx, k.tenant, "DELETE FROM sessions WHERE tenant = $1 AND principal = $2 AND id = $3", k.tenant, k.principal, k.id)
	return n, s.files.unavailableOr(err)
}

// Freeze writes a session to the database. It takes no memory on this host until it is used again, here or on
// another host.
func (s *Sessions) Freeze(ctx context.Context, p skill.Principal, id string) (*skill.Session, error) {
	k := keyOf(p, id)
	leave, ok := s.turns.enter(ctx, k, maxTurn)
	if !ok {
		return nil, &skill.Error{Op: "sessions.Freeze", Code: skill.Conflict, Subject: "session", Message: "a call uses the session; retry", Err: context.Cause(ctx)}
	}
	defer leave()
	h := s.here(k)
	if h == nil {
		f, err := s.findFrozen(ctx, k)
		if err != nil {
			return nil, err
		}
		return &f.Session, nil
	}
	return s.freeze(ctx, k, p, h)
}

func (s *Sessions) freeze(ctx context.Context, k ownKey, p skill.Principal, h *HeldSession) (*skill.Session, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, s.files.failed(err)
	}
	body := enc.EncodeAll(h.State.State, make([]byte, 0, len(h.State.State)+1<<10)) // it may be of a kind that does not get smaller
	_ = enc.Close()
	info, err := s.files.Put(ctx, p, "", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	next := h.Session
	next.Frozen = true
	now := s.now()
	next.ExpiresAt = now.Add(s.files.o.Keep)
	err = s.files.o.DB.InTurn(ctx, k.tenant, func() error {
		return s.files.o.DB.InTx(ctx, func(tx *sql.Tx) error {
			// An earlier attempt may have been stored, though its answer was lost.
			if _, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE tenant = $1 AND principal = $2 AND id = $3", k.tenant, k.principal, k.id); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO sessions (tenant, principal, "+sessionColumns+") VALUES ("+store.List(1, 18)+")", k.tenant, k.principal,
				k.id, next.Language, next.Workspace, strings.Join(next.Packages, ","), strings.Join(h.Ahead, ","), h.Last, int64(next.MemoryMB), next.Size, next.Runs, int64(next.FuelUsed), hex.EncodeToString(h.State.Seed[:]), h.State.Made, info.ID,
				next.CreatedAt.UnixMicro(), next.UsedAt.UnixMicro(), next.ExpiresAt.UnixMicro())
			if err != nil {
				return err
			}
			return hold(ctx, tx, k.tenant, []skill.WorkspaceFile{{ID: info.ID}}, next.ExpiresAt.UnixMicro())
		})
	})
	if err != nil {
		return nil, s.files.unavailable(err)
	}
	s.mu.Lock()
	s.drop(k)
	s.mu.Unlock()
	return &next, nil
}

// thaw takes a session from the database. Of several hosts that do so at once, one has it.
func (s *Sessions) thaw(ctx context.Context, k ownKey, p skill.Principal) (*HeldSession, error) {
	f, err := s.findFrozen(ctx, k)
	if err != nil {
		return nil, err
	}
	if f.State.State, err = s.frozen(ctx, p, f); err != nil {
		return nil, err
	}
	h := &f.HeldSession
	h.Frozen = false
	if len(h.State.State) == 0 { // no call has left a memory
		h.State.State, h.Ahead = nil, nil
	}
	s.mu.Lock()
	err = s.put(k, h)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	n, err := s.deleteFrozen(ctx, k)
	if err == nil && n == 0 {
		err = noSession(k.id) // another host was faster
	}
	if err != nil {
		s.mu.Lock()
		s.drop(k)
		s.mu.Unlock()
		return nil, err
	}
	return h, nil
}

// frozen reads the memory of a frozen session, and holds it against its digest.
func (s *Sessions) frozen(ctx context.Context, p skill.Principal, f *frozenSession) ([]byte, error) {
	path, _, err := s.files.Path(ctx, p, f.digest)
	if skill.CodeOf(err) == skill.NotFound {
		return nil, noSession(f.ID)
	}
	var body []byte
	if err == nil {
		body, err = os.ReadFile(path)
	}
	if err != nil {
		if _, ok := errors.AsType[*skill.Error](err); !ok {
			err = s.files.failed(err)
		}
		return nil, err
	}
	damaged := func(why error) error {
		_ = os.Remove(path) // it is fetched again
		return &skill.Error{Op: "sessions.thaw", Code: skill.Internal, Subject: f.ID, Message: "the stored memory of the session is damaged; retry, or delete the session", Err: why}
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != f.digest {
		return nil, damaged(errors.New("its digest is another one"))
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MostSessionBytes))
	if err != nil {
		return nil, s.files.failed(err)
	}
	defer dec.Close()
	state, err := dec.DecodeAll(body, make([]byte, 0, min(max(f.Size, 0), MostSessionBytes)))
	if err != nil {
		return nil, damaged(fmt.Errorf("decompress it: %w", err))
	}
	if len(state) == 0 {
		state = nil // no call has run yet
	}
	return state, nil
}

// FreezeAll freezes the sessions of this host until ctx ends, the last used first. It is for a host that stops.
func (s *Sessions) FreezeAll(ctx context.Context) {
	type one struct {
		k ownKey
		h *HeldSession
	}
	var all []one
	s.mu.Lock()
	for k, h := range s.live {
		if h.State.State != nil && s.now().Before(h.ExpiresAt) {
			all = append(all, one{k, h})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b one) int { return b.h.UsedAt.Compare(a.h.UsedAt) })
	for i := range all {
		k, p := all[i].k, skill.Principal{Tenant: all[i].k.tenant, ID: all[i].k.principal}
		leave, ok := s.turns.enter(ctx, k, 0)
		if !ok {
			continue // a call has not ended yet
		}
		if ctx.Err() != nil {
			leave()
			return // the time to stop is over
		}
		if h := s.here(k); h != nil {
			if _, err := s.freeze(ctx, k, p, h); err != nil {
				s.files.o.Log.LogAttrs(ctx, slog.LevelWarn, "a session could not be frozen", slog.String("tenant", k.tenant), slog.String("reason", err.Error()))
			}
		}
		leave()
	}
}
