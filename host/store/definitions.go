package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/uptrace/bun"

	"openskill/host/catalogue/definitions"
	"openskill/sdk/skill"
)

// Definitions is where the operator's skills are kept.
func (d *DB) Definitions() definitions.Store { return definitionStore{d} }

type definitionStore struct{ db *DB }

// definitionRow is a row of skill_definitions.
type definitionRow struct {
	bun.BaseModel `bun:"table:skill_definitions"`

	ID            string         `bun:"id"`
	Name          string         `bun:"name"`
	Description   sql.NullString `bun:"description"`
	InputSchema   string         `bun:"input_schema"`
	OutputSchema  string         `bun:"output_schema"`
	CostMetadata  sql.NullString `bun:"cost_metadata"`
	IsEnabled     sql.NullBool   `bun:"is_enabled"`
	CreatedAt     stamp          `bun:"created_at"`
	Owner         string         `bun:"owner"`
	Version       string         `bun:"version"`
	Digest        string         `bun:"digest"`
	Type          string         `bun:"type"`
	Runtime       string         `bun:"runtime"`
	Entry         string         `bun:"entry"`
	Source        string         `bun:"source"`
	Place         string         `bun:"place"`
	Manifest      sql.NullString `bun:"manifest"`
	SeedValues    string         `bun:"seed_values"`
	ChangedFields string         `bun:"changed_fields"`
	UpdatedAt     stamp          `bun:"updated_at"`
	UpdatedBy     string         `bun:"updated_by"`
	DeletedAt     stamp          `bun:"deleted_at"`
	Revision      int64          `bun:"revision"`
}

// seedValues is what seed_values holds.
type seedValues struct {
	Description string      `json:"description"`
	Enabled     bool        `json:"is_enabled"`
	Cost        *skill.Cost `json:"cost_metadata"`
}

func rowOf(d *definitions.Definition) (*definitionRow, error) {
	cost := []byte("{}")
	var err error
	if d.Cost != nil {
		cost, err = json.Marshal(d.Cost)
	}
	seed, seedErr := json.Marshal(seedValues{plain(d.Seed.Description), d.Seed.Enabled, d.Seed.Cost})
	changed, changedErr := json.Marshal(append([]string{}, d.Changed...))
	if err := errors.Join(err, seedErr, changedErr); err != nil {
		return nil, err
	}
	return &definitionRow{
		ID: d.ID, Name: string(d.Name), Description: sql.NullString{String: plain(d.Description), Valid: true},
		InputSchema: jsonText(d.InputSchema), OutputSchema: jsonText(d.OutputSchema),
		CostMetadata: sql.NullString{String: string(cost), Valid: true}, IsEnabled: sql.NullBool{Bool: d.Enabled, Valid: true},
		CreatedAt: at(d.CreatedAt), Owner: plain(d.Owner), Version: plain(d.Version), Digest: d.Digest,
		Type: d.Type(), Runtime: d.Runtime(), Entry: plain(d.Entry), Source: d.Source, Place: plain(d.Place),
		Manifest: sql.NullString{String: plain(string(d.Manifest)), Valid: d.Manifest != nil}, SeedValues: string(seed), ChangedFields: string(changed),
		UpdatedAt: at(d.UpdatedAt), UpdatedBy: plain(d.UpdatedBy), DeletedAt: at(d.DeletedAt), Revision: int64(d.Revision),
	}, nil
}

// jsonText is JSON that both databases take: raw, or what comes closest where JSONB
// refuses it. One skill's schema must not keep a host from starting.
func jsonText(raw json.RawMessage) string {
	if jsonFits(raw) {
		return string(raw)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return "{}"
	}
	b, err := json.Marshal(fitting(v, 0))
	if err != nil {
		return "{}"
	}
	return string(b)
}

// fitting makes of a value what JSONB takes: text without NUL, numbers that it can write
// out (others become text), and no deeper than jsonFits allows (below that is null).
func fitting(v any, depth int) any {
	const deepest, digits = 500, 1000
	switch v := v.(type) {
	case string:
		return plain(v)
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		n, err := strconv.Atoi(cmp.Or(exponent, "0"))
		if err != nil || n > digits || n < -digits || len(v) > digits {
			return v.String()
		}
		return v
	case []any:
		if depth >= deepest {
			return nil
		}
		for i := range v {
			v[i] = fitting(v[i], depth+1)
		}
	case map[string]any:
		if depth >= deepest {
			return nil
		}
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[plain(key)] = fitting(value, depth+1)
		}
		return out
	}
	return v
}

func (r *definitionRow) definition() (*definitions.Definition, error) {
	d := &definitions.Definition{
		ID: r.ID, Owner: r.Owner, Name: skill.ID(r.Name), Version: r.Version, Digest: r.Digest,
		Entry: r.Entry, Source: r.Source, Place: r.Place,
		Values:      definitions.Values{Description: r.Description.String, Enabled: r.IsEnabled.Bool || !r.IsEnabled.Valid},
		InputSchema: json.RawMessage(r.InputSchema), OutputSchema: json.RawMessage(r.OutputSchema),
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time, UpdatedBy: r.UpdatedBy, DeletedAt: r.DeletedAt.Time, Revision: uint64(r.Revision),
	}
	if r.Type != "" {
		d.Kind = skill.Kind(r.Type + ":" + r.Runtime)
	}
	if r.Manifest.Valid {
		d.Manifest = []byte(r.Manifest.String)
	}
	if c := r.CostMetadata.String; c != "" && c != "{}" && c != "null" {
		d.Cost = &skill.Cost{}
		if err := json.Unmarshal([]byte(c), d.Cost); err != nil {
			return nil, fmt.Errorf("store: cost_metadata of the definition %s: %w", r.Name, err)
		}
	}
	var seed seedValues
	if err := json.Unmarshal([]byte(r.SeedValues), &seed); err != nil {
		return nil, fmt.Errorf("store: seed_values of the definition %s: %w", r.Name, err)
	}
	d.Seed = definitions.Values{Description: seed.Description, Enabled: seed.Enabled, Cost: seed.Cost}
	if err := json.Unmarshal([]byte(r.ChangedFields), &d.Changed); err != nil {
		return nil, fmt.Errorf("store: changed_fields of the definition %s: %w", r.Name, err)
	}
	if len(d.Changed) == 0 {
		d.Changed = nil
	}
	return d, nil
}

// Definitions implements definitions.Store.
func (s definitionStore) Definitions(ctx context.Context, owner string) ([]*definitions.Definition, error) {
	var rows []*definitionRow
	if err := s.db.read.NewSelect().Model(&rows).Where("owner = ?", plain(owner)).Order("name").Scan(ctx); err != nil {
		return nil, err
	}
	list := make([]*definitions.Definition, 0, len(rows))
	for _, r := range rows {
		d, err := r.definition()
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// Change implements definitions.Store.
func (s definitionStore) Change(ctx context.Context, owner string, name skill.ID, do func(*definitions.Definition) (*definitions.Definition, error)) error {
	err := s.db.changing(ctx, definitions.Topic, func(ctx context.Context, tx bun.Tx, revision uint64) error {
		row := &definitionRow{}
		var now *definitions.Definition
		err := tx.NewSelect().Model(row).Where("owner = ?", plain(owner)).Where("name = ?", string(name)).Scan(ctx)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		default:
			if now, err = row.definition(); err != nil {
				return err
			}
		}
		next, err := do(now)
		switch {
		case err != nil:
			return err
		case next == nil && now == nil:
			return definitions.ErrUnchanged
		case next == nil:
			_, err = tx.NewDelete().Model((*definitionRow)(nil)).Where("owner = ?", plain(owner)).Where("name = ?", string(name)).Exec(ctx)
			return err
		}
		written := *next
		written.Owner, written.Name, written.Revision = owner, name, revision
		if row, err = rowOf(&written); err != nil {
			return err
		}
		if now == nil {
			_, err = tx.NewInsert().Model(row).Exec(ctx)
			return err
		}
		_, err = tx.NewUpdate().Model(row).Where("owner = ?", plain(owner)).Where("name = ?", string(name)).Exec(ctx)
		return err
	})
	if errors.Is(err, definitions.ErrUnchanged) {
		return nil
	}
	return err
}
