package skills_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestLimits reaches every limit of every skill, from both sides. The cases are
// made here because their inputs and answers are long and regular.
func TestLimits(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	info := func(n int, message string) string {
		return fmt.Sprintf(`{"line_no":%d,"timestamp":null,"level":"INFO","message":%q}`, n, message)
	}
	match := func(path string, line int, snippet string) string {
		return fmt.Sprintf(`{"path":%q,"line_no":%d,"snippet":%q}`, "./data/"+path, line, snippet)
	}
	many := func(n int, item func(i int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return strings.Join(items, ",")
	}
	stats := func(lines, records int, drops string, truncated bool) string {
		return `{` + counts(lines, records, drops, truncated) + `}`
	}
	readAs := func(format string) string {
		return `"read_as":{"format":"` + format + `","encoding":"utf-8","compression":"none"},"stats":`
	}
	records := func(list, stats string) string { return `{"records":[` + list + `],` + readAs("text") + stats + `}` }
	invalid := func(field, reason string) *wantError { return &wantError{"INVALID_ARGUMENT", field, reason} }
	down := func(n int) string { return rep("d/", n) }

	for _, c := range []struct {
		skill, name string
		files       map[string]string
		input, want string
		err         *wantError
	}{
		{
			skill: "echo", name: "a megabyte of text",
			input: `{"text":"` + rep("技能\\n", 150_000) + `"}`, want: `{"echoed":"` + rep("技能\\n", 150_000) + `"}`,
		},
		{
			skill: "echo", name: "nested too deep",
			input: `{"text":` + rep("[", 100_000) + rep("]", 100_000) + `}`, err: invalid("", "malformed"),
		},
		{
			skill: "calculator", name: "100000 numbers",
			input: `{"ops":["sum","median"],"numbers":[` + many(100_000, func(i int) string { return fmt.Sprint(i) }) + `]}`,
			want:  `{"results":{"sum":4999950000,"median":49999.5}}`,
		},
		{
			skill: "calculator", name: "100001 numbers",
			input: `{"ops":["sum"],"numbers":[` + rep("1,", 100_000) + `1]}`, err: invalid("numbers", "length"),
		},
		{
			skill: "calculator", name: "a number of 5000 digits",
			input: `{"ops":["sum"],"numbers":[` + rep("9", 5000) + `]}`, err: invalid("", "malformed"),
		},

		{
			skill: "file_search", name: "1000 characters to find",
			files: map[string]string{"a.txt": rep("q", 1000) + "\n"},
			input: `{"query":"` + rep("q", 1000) + `"}`,
			want:  `{"matches":[` + match("a.txt", 1, rep("q", 200)+"…") + `],"skipped":{},"truncated":false}`,
		},
		{
			skill: "file_search", name: "1001 characters to find",
			input: `{"query":"` + rep("q", 1001) + `"}`, err: invalid("query", "length"),
		},
		{
			skill: "file_search", name: "a path of 1025 characters",
			input: `{"query":"a","root_dir":"data/` + rep("x", 1020) + `"}`, err: invalid("root_dir", "length"),
		},
		{
			skill: "file_search", name: "a name that no file system takes",
			input: `{"query":"a","root_dir":"data/` + rep("x", 300) + `"}`, err: invalid("root_dir", "not_found"),
		},
		{
			skill: "file_search", name: "a glob of 201 characters",
			input: `{"query":"a","glob":"` + rep("*", 201) + `"}`, err: invalid("glob", "length"),
		},
		{
			skill: "file_search", name: "20 matches where nothing else is said",
			files: map[string]string{"a.txt": rep("many\n", 21)}, input: `{"query":"many"}`,
			want: `{"matches":[` + many(20, func(i int) string { return match("a.txt", i+1, "many") }) + `],"skipped":{},"truncated":true}`,
		},
		{
			skill: "file_search", name: "1000 matches at most",
			files: map[string]string{"a.txt": rep("many\n", 1200)}, input: `{"query":"many","limit":1000}`,
			want: `{"matches":[` + many(1000, func(i int) string { return match("a.txt", i+1, "many") }) + `],"skipped":{},"truncated":true}`,
		},
		{
			skill: "file_search", name: "folders deeper than 32 are not entered, and the rest is searched",
			files: map[string]string{"a/" + down(31) + "x": "deep\n", "a/" + down(32) + "y": "deep\n", "b": "deep\n"},
			input: `{"query":"deep"}`,
			want:  `{"matches":[` + match("a/"+down(31)+"x", 1, "deep") + "," + match("b", 1, "deep") + `],"skipped":{"too_deep":1},"truncated":true}`,
		},
		{
			skill: "file_search", name: "a file of 5 MiB and one of a byte more",
			files: map[string]string{"a": "hit" + rep("\n", 5<<20-3), "b": "hit" + rep("\n", 5<<20-2)},
			input: `{"query":"hit"}`, want: `{"matches":[` + match("a", 1, "hit") + `],"skipped":{"too_large":1},"truncated":false}`,
		},
		{
			skill: "file_search", name: "200 characters are not cut, 201 are",
			files: map[string]string{"a": rep("😀", 200) + "\n" + rep("😀", 201) + "\n"}, input: `{"query":"😀"}`,
			want: `{"matches":[` + match("a", 1, rep("😀", 200)) + "," + match("a", 2, rep("😀", 200)+"…") + `],"skipped":{},"truncated":false}`,
		},
		{
			skill: "file_search", name: "the cut is around the hit",
			files: map[string]string{"a": rep("技", 300) + "hit" + rep("能", 300) + "\n" + rep("é", 300) + "hit\n"}, input: `{"query":"hit"}`,
			want: `{"matches":[` + match("a", 1, "…"+rep("技", 60)+"hit"+rep("能", 137)+"…") + "," +
				match("a", 2, "…"+rep("é", 197)+"hit") + `],"skipped":{},"truncated":false}`,
		},

		{
			skill: "log_transform", name: "200 records where nothing else is said",
			files: map[string]string{"a.log": rep("INFO x\n", 201)}, input: `{"input_path":"data/a.log"}`,
			want: records(many(200, func(i int) string { return info(i+1, "x") }), stats(200, 200, "", true)),
		},
		{
			skill: "log_transform", name: "10000 records at most",
			files: map[string]string{"a.log": rep("INFO x\n", 10_001)}, input: `{"input_path":"data/a.log","limit":10000}`,
			want: records(many(10_000, func(i int) string { return info(i+1, "x") }), stats(10_000, 10_000, "", true)),
		},
		{
			skill: "log_transform", name: "a mebibyte of records on standard output",
			files: map[string]string{"a.log": rep("INFO "+rep("w", 60_000)+"\n", 30)}, input: `{"input_path":"data/a.log"}`,
			want: records(many(17, func(i int) string { return info(i+1, rep("w", 60_000)) }), stats(17, 17, "", true)),
		},
		{
			skill: "log_transform", name: "a line of 64 KiB and one of a byte more",
			files: map[string]string{"a.log": "INFO " + rep("x", 64<<10-5) + "\nINFO " + rep("x", 64<<10-4) + "\n"},
			input: `{"input_path":"data/a.log"}`, want: records(info(1, rep("x", 64<<10-5)), stats(2, 1, `"too_long":1`, false)),
		},
		{
			skill: "log_transform", name: "the whole lines in 5 MiB",
			files: map[string]string{"a.log": rep("TRACE "+rep("h", 1017)+"\n", 5*1024) + "TRACE end\n"},
			input: `{"input_path":"data/a.log","output":"file"}`, want: `{"output_path":"work/a.jsonl",` + readAs("text") + stats(5120, 5120, "", true) + `}`,
		},
		{
			skill: "log_transform", name: "the last line in 5 MiB is not whole",
			files: map[string]string{"a.log": "INFO x\n" + rep("y", 5<<20)},
			input: `{"input_path":"data/a.log"}`, want: records(info(1, "x"), stats(1, 1, "", true)),
		},
		{
			skill: "log_transform", name: "100000 lines",
			files: map[string]string{"a.log": rep("\n", 99_999) + "INFO x\n"},
			input: `{"input_path":"data/a.log"}`, want: records(info(100_000, "x"), stats(100_000, 1, "", false)),
		},
		{
			skill: "log_transform", name: "100001 lines",
			files: map[string]string{"a.log": rep("\n", 100_000) + "INFO x\n"},
			input: `{"input_path":"data/a.log"}`, want: records("", stats(100_000, 0, "", true)),
		},
		{
			// A record and its line end are 131 bytes: 64035 of them fit 8 MiB.
			skill: "log_transform", name: "8 MiB of records in a file",
			files: map[string]string{"a.csv": rep("k", 60) + "," + rep("l", 55) + "\n" + rep("1,2\n", 70_000)},
			input: `{"input_path":"data/a.csv","output":"file"}`,
			want:  `{"output_path":"work/a.jsonl",` + readAs("csv") + stats(64036, 64035, "", true) + `}`,
		},
		{
			skill: "log_transform", name: "256 columns and one more",
			files: map[string]string{"a.csv": many(257, func(i int) string { return fmt.Sprint("c", i) }) + "\n"},
			input: `{"input_path":"data/a.csv"}`, err: invalid("format", "header"),
		},
		{
			skill: "log_transform", name: "time and level are looked for in 1000 characters",
			files: map[string]string{"a.log": rep("-", 1000) + " 2026-01-05T08:00:00Z INFO far\n" + rep("é", 996) + " INFO near" + rep("z", 40) + "\n" + rep("é", 994) + " INFO\n"},
			input: `{"input_path":"data/a.log"}`,
			want:  records(info(3, rep("é", 994)), stats(3, 1, `"no_time_or_level":2`, false)),
		},
		{
			skill: "log_transform", name: "JSON nested 64 deep and one more",
			files: map[string]string{"a.jsonl": `{"a":` + rep("[", 64) + rep("]", 64) + "}\n" + `{"a":` + rep("[", 65) + rep("]", 65) + "}\n" + `{"a":` + rep("[", 20_000) + rep("]", 20_000) + "}\n"},
			input: `{"input_path":"data/a.jsonl"}`,
			want:  `{"records":[{"a":` + rep("[", 64) + rep("]", 64) + `}],` + readAs("jsonl") + stats(3, 1, `"not_a_json_object":2`, false) + `}`,
		},
		{
			skill: "log_transform", name: "a long name is cut to 60 characters",
			files: map[string]string{rep("n", 100) + ".log": "INFO x\n"},
			input: `{"input_path":"data/` + rep("n", 100) + `.log","output":"file"}`,
			want:  `{"output_path":"work/` + rep("n", 60) + `.jsonl",` + readAs("text") + stats(1, 1, "", false) + `}`,
		},
		{
			skill: "log_transform", name: "a pattern of 201 characters",
			files: map[string]string{"a.log": ""},
			input: `{"input_path":"data/a.log","rules":{"timestamp_regex":"` + rep("t", 201) + `"}}`, err: invalid("rules.timestamp_regex", "length"),
		},
		{
			skill: "log_transform", name: "51 levels",
			files: map[string]string{"a.log": ""},
			input: `{"input_path":"data/a.log","rules":{"level_map":{` + many(51, func(i int) string { return fmt.Sprintf(`"L%d":"X"`, i) }) + `}}}`,
			err:   invalid("rules.level_map", "length"),
		},
		{
			skill: "log_transform", name: "a level of 41 characters",
			files: map[string]string{"a.log": ""},
			input: `{"input_path":"data/a.log","rules":{"level_map":{"` + rep("L", 41) + `":"X"}}}`, err: invalid("rules.level_map", "length"),
		},
	} {
		t.Run(c.skill+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			for name, content := range c.files {
				writeFile(t, data, name, content)
			}
			one := testCase{Input: json.RawMessage(c.input), Error: c.err, anyFiles: true}
			if c.err == nil {
				one.Want = json.RawMessage(c.want)
			}
			answerAlike(t, c.skill, data, one)
		})
	}
}

// TestEntryLimit has a folder of its own, because it is large: 20,000 names of one
// file, which take a tenth of the time of as many files.
func TestEntryLimit(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	writeFile(t, data, "000/00", "x")
	for i := range 200 {
		dir := filepath.Join(data, fmt.Sprintf("%03d", i))
		musttest.Do(t, os.MkdirAll(dir, 0o755))
		for j := range 100 {
			if i+j == 0 {
				continue
			}
			musttest.Do(t, os.Link(filepath.Join(data, "000", "00"), filepath.Join(dir, fmt.Sprintf("%02d", j))))
		}
	}
	writeFile(t, data, "000/needle", "needle\n")
	writeFile(t, data, "199/needle", "needle\n")
	one := testCase{
		Input: json.RawMessage(`{"query":"needle","glob":"**/needle"}`),
		Want:  json.RawMessage(`{"matches":[{"path":"./data/000/needle","line_no":1,"snippet":"needle"}],"skipped":{},"truncated":true}`),
	}
	answerAlike(t, "file_search", data, one)
}

// TestLinksAreNotFollowed plants links beside real files. Whatever a form makes
// of a link, it may never show what is behind it.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	outside, data := t.TempDir(), t.TempDir()
	writeFile(t, outside, "secret.log", "INFO secret needle\n")
	writeFile(t, data, "real/plain.log", "INFO plain needle\n")
	for name, target := range map[string]string{
		"absolute.log": filepath.Join(outside, "secret.log"),
		"folder":       outside,
		"inside.log":   "real/plain.log",
		"dangling.log": "nowhere",
		"loop.log":     "loop.log",
		"up":           "..",
	} {
		musttest.Do(t, os.Symlink(target, filepath.Join(data, name)))
	}
	musttest.Do(t, os.Link(filepath.Join(outside, "secret.log"), filepath.Join(data, "hard.log")))
	walk := testCase{Input: json.RawMessage(`{"query":"needle","limit":100}`)}
	for _, form := range formsOf(t, "file_search") {
		e := decode(t, form, form.run(t, "file_search", data, walk))
		if !e.Success || !strings.Contains(string(e.Data), "plain needle") {
			t.Errorf("%s: the real file was not found: %s", form, e.Data)
		}
		for _, name := range []string{"absolute", "folder", "inside", "dangling", "loop", "up"} {
			if strings.Contains(string(e.Data), "./data/"+name) {
				t.Errorf("%s: the walk went through the link %s: %s", form, name, e.Data)
			}
		}
		// A second name of a file cannot be told from inside a module; there the
		// sandbox keeps it out.
		if strings.Contains(string(e.Data), "secret") {
			t.Errorf("%s: a hard link was read: %s", form, e.Data)
		}
		for _, dir := range []string{"folder", "up", "loop.log", "dangling.log"} {
			refused(t, form, "file_search", data, fmt.Sprintf(`{"query":"needle","root_dir":"./data/%s"}`, dir))
		}
	}
	for _, form := range formsOf(t, "log_transform") {
		for _, file := range []string{"absolute.log", "folder/secret.log", "inside.log", "dangling.log", "loop.log", "up/real/plain.log"} {
			refused(t, form, "log_transform", data, fmt.Sprintf(`{"input_path":"./data/%s"}`, file))
		}
	}
}

// refused holds a path that fits the schema to FORBIDDEN_PATH: only the guest can
// see what it leads to.
func refused(t *testing.T, form form, id, data, input string) {
	t.Helper()
	got := form.run(t, id, data, testCase{Input: json.RawMessage(input)})
	if r := got.result; r.Success || r.Error.Code != skill.ForbiddenPath || !got.inside {
		t.Errorf("%s: %s: want FORBIDDEN_PATH of the guest, got %+v %s", form, input, r.Error, r.Data)
	}
}
