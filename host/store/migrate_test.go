package store_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// raw is a database without the store before it.
type raw struct {
	*sql.DB
	postgres bool
}

func rawOf(t *testing.T, url string) raw {
	t.Helper()
	driver, name, postgres := "sqlite", strings.TrimPrefix(url, "sqlite:"), strings.HasPrefix(url, "postgres:")
	if postgres {
		driver, name = "pgx", url+"&search_path=agent"
	}
	db := musttest.Get(sql.Open(driver, name))(t)
	t.Cleanup(func() { _ = db.Close() })
	return raw{db, postgres}
}

func (r raw) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := r.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// rows gives all rows as text.
func (r raw) rows(t *testing.T, query string) (out [][]string) {
	t.Helper()
	rows, err := r.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names := musttest.Get(rows.Columns())(t)
	for rows.Next() {
		row := make([]any, len(names))
		for i := range row {
			row[i] = new(any)
		}
		musttest.Do(t, rows.Scan(row...))
		var texts []string
		for _, v := range row {
			texts = append(texts, fmt.Sprint(*v.(*any)))
		}
		out = append(out, texts)
	}
	musttest.Do(t, rows.Err())
	return out
}

// tables lists openSkill's tables in the order in which they were made.
func (r raw) tables(t *testing.T) (names []string) {
	t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version' ORDER BY rowid"
	if r.postgres {
		query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'agent'::regnamespace AND relname <> 'goose_db_version' ORDER BY oid"
	}
	for _, row := range r.rows(t, query) {
		names = append(names, row[0])
	}
	return names
}

// columns gives name, type, whether a row must have it, and whether it has a default.
func (r raw) columns(t *testing.T, table string) [][]string {
	t.Helper()
	query := "SELECT name, lower(type), \"notnull\" = 1 OR pk > 0, dflt_value IS NOT NULL FROM pragma_table_info('" + table + "')"
	if r.postgres {
		query = `SELECT column_name, data_type, is_nullable = 'NO', column_default IS NOT NULL FROM information_schema.columns
			WHERE table_schema = 'agent' AND table_name = '` + table + "' ORDER BY ordinal_position"
	}
	return r.rows(t, query)
}

// values are those that a column takes where any value of its type will not do.
var values = map[string]any{
	"execution_logs.principal_type": "agent",
	"execution_logs.status":         "success",
	"api_keys.hash":                 make([]byte, 32),
	"agent_sessions.principal_type": "agent",
	"agent_sessions.status":         "running",
}

// fillEmpty gives every empty table a row. Texts are all the same, so that rows that name
// each other are found.
func (r raw) fillEmpty(t *testing.T) {
	t.Helper()
	for _, table := range r.tables(t) {
		if len(r.rows(t, "SELECT 1 FROM "+table+" LIMIT 1")) > 0 {
			continue
		}
		var names, places []string
		var args []any
		for _, c := range r.columns(t, table) {
			name, of, needed, fallback := c[0], c[1], c[2] != "false" && c[2] != "0", c[3] != "false" && c[3] != "0"
			if !needed || fallback && name != "id" {
				continue
			}
			value, ok := values[table+"."+name]
			if !ok {
				value = anyOf(of)
			}
			names, args = append(names, name), append(args, value)
			places = append(places, fmt.Sprintf("$%d", len(args)))
		}
		r.exec(t, "INSERT INTO "+table+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(places, ", ")+")", args...)
	}
}

func anyOf(column string) any {
	switch {
	case column == "uuid":
		return "019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f"
	case strings.HasPrefix(column, "timestamp"):
		return when
	case column == "jsonb":
		return `{"a": 1}`
	case column == "blob" || column == "bytea":
		return []byte("x")
	case column == "boolean":
		return true
	case strings.Contains(column, "int"):
		return 1
	}
	return "x"
}

// dump gives what is in every column of every table.
func (r raw) dump(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, table := range r.tables(t) {
		var names []string
		for _, c := range r.columns(t, table) {
			names = append(names, c[0])
			out[table+"."+c[0]] = ""
		}
		for _, row := range r.rows(t, "SELECT "+strings.Join(names, ", ")+" FROM "+table) {
			for i, name := range names {
				out[table+"."+name] += row[i] + "; "
			}
		}
	}
	return out
}

// addsIndex is the step that adds no more than an index.
const addsIndex = 8

// Each step goes down and up again, and takes away a table or a column at least; what it
// did not make keeps its rows.
func TestMigrationsKeepRows(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, fresh func(*testing.T) string) {
		url := fresh(t)
		m := musttest.Get(store.Migrate(t.Context(), store.Options{URL: url}))(t)
		defer m.Close()
		to := func(version int64) {
			t.Helper()
			steps, err := m.To(t.Context(), version)
			if err != nil {
				t.Fatalf("to %d: %v", version, err)
			}
			for _, s := range steps {
				if (s.Applied != nil) != (s.Version <= version) {
					t.Errorf("at %d: %+v", version, s)
				}
			}
		}
		to(m.Latest())
		r := rawOf(t, url)
		for version := m.Latest() - 1; version >= 0; version-- {
			r.fillEmpty(t)
			before := r.dump(t)
			to(version)
			below := r.dump(t)
			if len(below) == len(before) && version != addsIndex-1 || version == 0 && len(below) != 0 {
				t.Errorf("down to %d leaves %v", version, slices.Collect(maps.Keys(below)))
			}
			to(m.Latest())
			above := r.dump(t)
			for column := range before {
				if rows, stays := below[column]; stays && (rows != before[column] || above[column] != rows) {
					t.Errorf("%s: down to %d and up again\nbefore %s\nbelow  %s\nabove  %s", column, version, before[column], rows, above[column])
				}
				if _, ok := above[column]; !ok {
					t.Errorf("%s is not there again after %d", column, version)
				}
			}
		}
		if _, err := m.To(t.Context(), m.Latest()+1); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("a version that there is not: %v", err)
		}
	})
}

// A release works with the schema of a later one that has only more. Another one is not touched, and its operator is told.
func TestLaterRelease(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, fresh func(*testing.T) string) {
		url := fresh(t)
		d := musttest.Get(store.Open(t.Context(), store.Options{URL: url}))(t)
		musttest.Do(t, d.Close())
		raw := rawOf(t, url)
		raw.exec(t, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)")
		d, err := store.Open(t.Context(), store.Options{URL: url})
		if err != nil {
			t.Fatalf("a schema that has more: %v", err)
		}
		musttest.Get(d.Exec(t.Context(), "UPDATE schema_floor SET version = 9999"))(t)
		musttest.Do(t, d.Close())
		if _, err := store.Open(t.Context(), store.Options{URL: url}); skill.CodeOf(err) != skill.Conflict || !strings.Contains(err.Error(), "9999") {
			t.Errorf("got %v", err)
		}
		m := musttest.Get(store.Migrate(t.Context(), store.Options{URL: url}))(t)
		defer m.Close()
		if _, err := m.To(t.Context(), 0); skill.CodeOf(err) != skill.Conflict {
			t.Errorf("got %v", err)
		}
	})
}

// The names that the agent-service documents give are those of both databases.
func TestExecutionLogsAsDocumented(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, fresh func(*testing.T) string) {
		url := fresh(t)
		storetest.Open(t, url)
		r := rawOf(t, url)
		// Their columns alone make a row.
		const insert = `INSERT INTO execution_logs (id, principal_id, principal_type, session_id, skill_name, iteration_index, input_params,
			output_result, token_usage, duration_ms, status, error_message) VALUES ($1, 'p', $2, $1, 's', 0, '{}', '[]', 0, 1, $3, '')`
		id := 0
		try := func(principal, status string) error {
			id++
			_, err := r.ExecContext(t.Context(), insert, fmt.Sprintf("00000000-0000-4000-8000-%012d", id), principal, status)
			return err
		}
		for _, principal := range []string{"human", "agent", "operator", "anonymous"} {
			for _, status := range []string{"success", "failed", "terminated", "timeout"} {
				if err := try(principal, status); err != nil {
					t.Errorf("%s, %s: %v", principal, status, err)
				}
			}
		}
		for _, c := range [][2]string{{"martian", "success"}, {"", "success"}, {"agent", "running"}, {"agent", ""}} {
			if try(c[0], c[1]) == nil {
				t.Errorf("%q was taken", c)
			}
		}
		query := "SELECT name || ' ' || coalesce(sql, '') FROM sqlite_master WHERE type = 'index'"
		if r.postgres {
			query = "SELECT indexname || ' ' || indexdef FROM pg_indexes WHERE schemaname = 'agent'"
		}
		all := fmt.Sprint(r.rows(t, query))
		for name, columns := range map[string]string{
			"principal": "(principal_id, created_at DESC)", "skill": "(skill_name, created_at DESC)",
			"session": "(session_id, iteration_index)", "status": "(status, created_at DESC)",
		} {
			_, rest, found := strings.Cut(all, "idx_execution_logs_"+name+" ")
			if definition, _, _ := strings.Cut(rest, "]"); !found || !strings.Contains(definition, columns) {
				t.Errorf("index %s is not on %s: %s", name, columns, definition)
			}
		}
	})
}
