package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// definitionRows are the rows of one database.
type definitionRows struct{ *store.DB }

func rowsOf(t testing.TB) *definitionRows {
	t.Helper()
	return &definitionRows{storetest.SQLite(t)}
}

func (r *definitionRows) Definitions(ctx context.Context) ([]*Definition, error) {
	return definitions(ctx, r.Read, "TRUE")
}

func (r *definitionRows) Change(ctx context.Context, name skill.ID, do func(now *Definition) (*Definition, error)) error {
	return changeDefinition(ctx, r.DB, name, do)
}

// Latest is the revision of the last change.
func (r *definitionRows) Latest(t *testing.T) (revision int64) {
	t.Helper()
	musttest.Do(t, r.Read.QueryRowContext(t.Context(), "SELECT revision FROM revisions WHERE topic = $1", DefinitionsTopic).Scan(&revision))
	return revision
}

// Rows of definitions keep what is put there, on both databases.
func TestDefinitionRows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		open := fresh(t)
		testDefinitionRows(t, &definitionRows{open()}, &definitionRows{open()})
	})
}

func testDefinitionRows(t *testing.T, a, b *definitionRows) {
	t.Helper()
	all := func(t *testing.T, s *definitionRows) []*Definition {
		t.Helper()
		return musttest.Get(s.Definitions(t.Context()))(t)
	}
	put := func(t *testing.T, s *definitionRows, d *Definition) {
		t.Helper()
		musttest.Do(t, s.Change(t.Context(), d.Name, func(*Definition) (*Definition, error) { return d, nil }))
	}

	t.Run("AllFields", func(t *testing.T) {
		d := definition("all")
		put(t, a, d)
		got := all(t, b)
		if len(got) != 1 || got[0].Revision == 0 {
			t.Fatalf("there is %+v", got)
		}
		want := *d
		want.Revision = got[0].Revision
		// A database may write JSON in its own way.
		got[0].InputSchema, want.InputSchema = nil, nil
		if diff := cmp.Diff(&want, got[0]); diff != "" {
			t.Error(diff)
		}
		// A bare one: what is not there comes back as not there.
		bare := &Definition{
			ID: uuid.NewString(), Name: "bare", Source: Created, Manifest: []byte("{\"name\": \"bare\\u0001\"}"), InputSchema: []byte("{}"), OutputSchema: []byte("{}"),
			CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
		}
		put(t, b, bare)
		got = all(t, a)
		if len(got) != 2 || got[1].Name != "bare" {
			t.Fatalf("there is %+v", got)
		}
		want = *bare
		want.Revision = got[1].Revision
		if diff := cmp.Diff(&want, got[1]); diff != "" {
			t.Error(diff)
		}
		if got[1].Revision <= got[0].Revision {
			t.Errorf("revisions %d, then %d", got[0].Revision, got[1].Revision)
		}
	})

	t.Run("ChangeAndRemove", func(t *testing.T) {
		put(t, a, definition("one"))
		before := revisions(all(t, a))
		refusal := &skill.Error{Code: skill.Conflict, Message: "no"}
		for what, err := range map[string]error{"unchanged": errUnchanged, "refused": refusal} {
			got := a.Change(t.Context(), "one", func(now *Definition) (*Definition, error) {
				if now == nil || now.Name != "one" {
					t.Errorf("it begins with %+v", now)
				}
				return nil, err
			})
			if what == "refused" && !errors.Is(got, err) || what == "unchanged" && got != nil {
				t.Errorf("%s: %v", what, got)
			}
		}
		if diff := cmp.Diff(before, revisions(all(t, b))); diff != "" {
			t.Errorf("something was written: %s", diff)
		}
		err := b.Change(t.Context(), "one", func(now *Definition) (*Definition, error) {
			next := *now
			next.Enabled, next.Changed = false, nil
			return &next, nil
		})
		musttest.Do(t, err)
		for _, d := range all(t, a) {
			if d.Name == "one" && (d.Enabled || d.Changed != nil || d.Revision <= before["one"]) {
				t.Errorf("after the change: %+v", d)
			}
		}
		for range 2 { // what is gone can be removed again
			musttest.Do(t, a.Change(t.Context(), "one", func(*Definition) (*Definition, error) { return nil, nil }))
		}
		if _, ok := revisions(all(t, b))["one"]; ok {
			t.Error("it is still there")
		}
	})

	t.Run("AtOnce", func(t *testing.T) {
		put(t, a, definition("count"))
		const writers, each = 4, 8
		var wait sync.WaitGroup
		for i := range writers {
			s := []*definitionRows{a, b}[i%2]
			wait.Go(func() {
				for range each {
					err := s.Change(context.Background(), "count", func(now *Definition) (*Definition, error) {
						next := *now
						next.Cost = &skill.Cost{EstimatedTokens: now.Cost.EstimatedTokens + 1}
						return &next, nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range writers {
			s := []*definitionRows{a, b}[i%2]
			wait.Go(func() { // and one that is new to all
				err := s.Change(context.Background(), "fresh", func(now *Definition) (*Definition, error) {
					if now == nil {
						return definition("fresh"), nil
					}
					return nil, errUnchanged
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		for _, d := range all(t, a) {
			if d.Name == "count" && d.Cost.EstimatedTokens != 3+writers*each {
				t.Errorf("%d changes were made of %d", d.Cost.EstimatedTokens-3, writers*each)
			}
		}
	})

	t.Run("HostileText", func(t *testing.T) {
		d := definition("hostile")
		d.Description, d.UpdatedBy = "nul \x00, bytes \xff, quote ' ? $1 \\", "x'); DROP TABLE skill_definitions; --"
		put(t, a, d)
		for _, got := range all(t, b) {
			if got.Name == "hostile" && (got.Description != "nul \uFFFD, bytes \uFFFD, quote ' ? $1 \\" && got.Description != d.Description || got.UpdatedBy != d.UpdatedBy) {
				t.Errorf("it came back as %q by %q", got.Description, got.UpdatedBy)
			}
		}
	})

	// What one skill says must not keep a host from starting: every JSON is kept somehow.
	t.Run("HostileJSON", func(t *testing.T) {
		for i, text := range []string{`"a\u0000b"`, `"\ud800"`, `"\udc00\ud800"`, `1e400000`, `-1e-400000`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000)} {
			d := definition(skill.ID(fmt.Sprint("json", i)))
			d.InputSchema, d.OutputSchema = fmt.Appendf(nil, `{"default": %s}`, text), fmt.Appendf(nil, `{"default": %s}`, text)
			d.Seed.Description = "seed \x00 and \xff"
			if err := a.Change(t.Context(), d.Name, func(*Definition) (*Definition, error) { return d, nil }); err != nil {
				t.Errorf("%.20s: %v", text, err)
				continue
			}
			for _, got := range all(t, b) {
				if got.Name == d.Name && (!json.Valid(got.InputSchema) || !json.Valid(got.OutputSchema)) {
					t.Errorf("%.20s came back as %.100q", text, got.InputSchema)
				}
			}
		}
	})

	t.Run("ContextEnded", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		err := a.Change(ctx, "ended", func(*Definition) (*Definition, error) {
			stop()
			return definition("ended"), nil
		})
		_, written := revisions(all(t, b))["ended"]
		if (err == nil) != written {
			t.Errorf("the error is %v, and it was written: %v", err, written)
		}
	})
}

func revisions(list []*Definition) map[skill.ID]uint64 {
	out := map[skill.ID]uint64{}
	for _, d := range list {
		out[d.Name] = d.Revision
	}
	return out
}

func definition(name skill.ID) *Definition {
	at := time.Date(2026, 11, 22, 9, 30, 0, 123456000, time.UTC)
	return &Definition{
		ID: uuid.NewString(), Name: name, Version: "1.2.3", Digest: fmt.Sprintf("sha256:%064x", len(name)), Kind: skill.CLIPython, Entry: string(name) + ".py",
		Source: Seeded, Place: "skills/skills.yaml:7",
		Values:      Values{Description: "What holds, “ж” 😀.", Enabled: true, Cost: &skill.Cost{EstimatedTokens: 3, RateLimitPerMinute: 30}},
		Seed:        Values{Description: "What the seed says.", Enabled: false},
		Changed:     []string{"cost_metadata", "description", "is_enabled"},
		InputSchema: []byte(`{"type":"object","required":["b"],"properties":{"b":{"type":"number","maximum":1e5}}}`), OutputSchema: []byte(`{}`),
		CreatedAt: at, UpdatedAt: at.Add(time.Hour), UpdatedBy: "key:1", DeletedAt: at.Add(2 * time.Hour),
	}
}
