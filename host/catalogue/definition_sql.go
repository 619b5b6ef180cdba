package catalogue

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

	"openskill/host/store"
	"openskill/sdk/skill"
)

// DefinitionsTopic is what changes of definitions are announced by.
const DefinitionsTopic = "definitions"

// errUnchanged says that there is nothing to write.
var errUnchanged = errors.New("catalogue: unchanged")

// operators selects the rows of the operator's skills.
const operators = "owner = '' AND "

const definitionColumns = `id, name, description, is_enabled, cost_metadata, input_schema, output_schema, version, digest, type, runtime, entry, source, place, manifest,
	seed_values, changed_fields, created_at, updated_at, updated_by, deleted_at, revision`

// definitions returns those of the operator, in the order of their names, those included that
// were deleted.
func definitions(ctx context.Context, on store.Querier, where string, args ...any) ([]*Definition, error) {
	return store.All(ctx, on, scanDefinition, "SELECT "+definitionColumns+" FROM skill_definitions WHERE "+operators+where+" ORDER BY name", args...)
}

func scanDefinition(rows *sql.Rows) (*Definition, error) {
	d := &Definition{}
	var description, cost, manifest sql.NullString
	var enabled sql.NullBool
	var kind, runtime, input, output, seed, changed string
	var created, updated, deleted store.Time
	err := rows.Scan(&d.ID, &d.Name, &description, &enabled, &cost, &input, &output, &d.Version, &d.Digest, &kind, &runtime, &d.Entry, &d.Source, &d.Place, &manifest,
		&seed, &changed, &created, &updated, &d.UpdatedBy, &deleted, &d.Revision)
	if err != nil {
		return nil, err
	}
	d.Description, d.Enabled = description.String, enabled.Bool || !enabled.Valid
	d.InputSchema, d.OutputSchema = json.RawMessage(input), json.RawMessage(output)
	d.CreatedAt, d.UpdatedAt, d.DeletedAt = created.Time, updated.Time, deleted.Time
	if kind != "" {
		d.Kind = skill.Kind(kind + ":" + runtime)
	}
	if manifest.Valid {
		d.Manifest = []byte(manifest.String)
	}
	if c := cost.String; c != "" && c != "{}" && c != "null" {
		d.Cost = &skill.Cost{}
		err = json.Unmarshal([]byte(c), d.Cost)
	}
	if err = errors.Join(err, json.Unmarshal([]byte(seed), &d.Seed), json.Unmarshal([]byte(changed), &d.Changed)); err != nil {
		return nil, fmt.Errorf("catalogue: the definition %s: %w", d.Name, err)
	}
	if len(d.Changed) == 0 {
		d.Changed = nil
	}
	return d, nil
}

// changeDefinition has one definition changed, whatever others do at the same time. do gets
// what there is, or nil; what it returns is written with the next revision, nil removes the
// row, and its error comes back as it is, without a change. errUnchanged is no error.
func changeDefinition(ctx context.Context, db *store.DB, name skill.ID, do func(now *Definition) (*Definition, error)) error {
	err := db.Change(ctx, DefinitionsTopic, "", func(tx *sql.Tx, revision uint64) error {
		list, err := definitions(ctx, tx, "name = $1", string(name))
		if err != nil {
			return err
		}
		var now *Definition
		if len(list) > 0 {
			now = list[0]
		}
		next, err := do(now)
		switch {
		case err != nil:
			return err
		case next == nil && now == nil:
			return errUnchanged
		case next == nil:
			_, err = tx.ExecContext(ctx, "DELETE FROM skill_definitions WHERE "+operators+"name = $1", string(name))
			return err
		}
		return next.save(ctx, db, tx, revision)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

func (d *Definition) save(ctx context.Context, db *store.DB, tx *sql.Tx, revision uint64) error {
	cost := []byte("{}")
	var err error
	if d.Cost != nil {
		cost, err = json.Marshal(d.Cost)
	}
	values := d.Seed
	values.Description = store.Plain(values.Description)
	seed, seedErr := json.Marshal(values)
	changed, changedErr := json.Marshal(append([]string{}, d.Changed...))
	if err := errors.Join(err, seedErr, changedErr); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO skill_definitions (`+definitionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
		ON CONFLICT (owner, name) DO UPDATE SET description = excluded.description, is_enabled = excluded.is_enabled, cost_metadata = excluded.cost_metadata,
			input_schema = excluded.input_schema, output_schema = excluded.output_schema, version = excluded.version, digest = excluded.digest, type = excluded.type,
			runtime = excluded.runtime, entry = excluded.entry, source = excluded.source, place = excluded.place, manifest = excluded.manifest,
			seed_values = excluded.seed_values, changed_fields = excluded.changed_fields, created_at = excluded.created_at, updated_at = excluded.updated_at,
			updated_by = excluded.updated_by, deleted_at = excluded.deleted_at, revision = excluded.revision, id = excluded.id`,
		d.ID, string(d.Name), store.Plain(d.Description), d.Enabled, string(cost), jsonText(d.InputSchema), jsonText(d.OutputSchema), store.Plain(d.Version), d.Digest,
		d.Type(), d.Runtime(), store.Plain(d.Entry), d.Source, store.Plain(d.Place), sql.NullString{String: store.Plain(string(d.Manifest)), Valid: d.Manifest != nil},
		string(seed), string(changed), db.At(d.CreatedAt), db.At(d.UpdatedAt), store.Plain(d.UpdatedBy), db.At(d.DeletedAt), int64(revision))
	return err
}

// jsonText is JSON that both databases take: raw, or what comes closest where JSONB refuses
// it. One skill's schema must not keep a host from starting.
func jsonText(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return "{}"
	}
	b, err := marshal(fitting(v, 0))
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
		return store.Plain(v)
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
			out[store.Plain(key)] = fitting(value, depth+1)
		}
		return out
	}
	return v
}
