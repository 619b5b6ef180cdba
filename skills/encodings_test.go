package skills_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"openskill/internal/musttest"
)

// packed is text in one gzip member, with every field that its header can have.
func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := musttest.Get(gzip.NewWriterLevel(&b, gzip.BestCompression))(t)
	z.Header = gzip.Header{Name: "app.log", Comment: "rotated", Extra: []byte("xx\x01\x00y"), ModTime: time.Unix(1, 0)}
	musttest.Get(z.Write([]byte(text)))(t)
	musttest.Do(t, z.Close())
	return b.String()
}

// wide is text in UTF-16, without a byte order mark.
func wide(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// A logFile is a file and what log_transform makes of it.
type logFile struct {
	name, file, content string
	input               string // other fields of the input, with a comma in front
	records             string
	readAs              string // format, encoding and compression
	stats               string // of lines, records, dropped, with reasons and truncated
	reason              string // of INVALID_ARGUMENT, where it is refused
}

func (c logFile) hold(t *testing.T) {
	t.Helper()
	data := t.TempDir()
	writeFile(t, data, c.file, c.content)
	one := testCase{Input: json.RawMessage(fmt.Sprintf(`{"input_path":"./data/%s"%s}`, c.file, c.input)), anyFiles: true}
	if c.reason != "" {
		one.Error = &wantError{"INVALID_ARGUMENT", "input_path", c.reason}
	} else {
		as := strings.Fields(c.readAs)
		one.Want = fmt.Appendf(nil, `{"records":[%s],"read_as":{"format":%q,"encoding":%q,"compression":%q},"stats":{%s}}`,
			c.records, as[0], as[1], as[2], c.stats)
	}
	answerAlike(t, "log_transform", data, one)
}

func record(line int, level, message string) string {
	return fmt.Sprintf(`{"line_no":%d,"timestamp":null,"level":%q,"message":%q}`, line, level, message)
}

func counts(lines, records int, drops string, truncated bool) string {
	var reasons map[string]int
	if err := json.Unmarshal([]byte("{"+drops+"}"), &reasons); err != nil {
		panic(err)
	}
	dropped := 0
	for _, n := range reasons {
		dropped += n
	}
	return fmt.Sprintf(`"lines":%d,"records":%d,"dropped":%d,"dropped_reasons":{%s},"truncated":%t`, lines, records, dropped, drops, truncated)
}

// TestReadsEncodingsOfLogs holds what log_transform reads in the encodings that
// logs are written in.
func TestReadsEncodingsOfLogs(t *testing.T) {
	t.Parallel()
	le, be := binary.AppendByteOrder(binary.LittleEndian), binary.AppendByteOrder(binary.BigEndian)
	const text = "INFO caf\u00e9 \U0001f600\r\n\r\nERROR 技能\r\n"
	both := record(1, "INFO", "caf\u00e9 \U0001f600") + "," + record(3, "ERROR", "技能")
	for _, c := range []logFile{
		{
			name: "a Latin-1 line among others", content: "INFO one\nINFO caf\xe9 \xfc\xdf\nWARN caf\u00e9\n",
			records: record(1, "INFO", "one") + "," + record(2, "INFO", "café üß") + "," + record(3, "WARN", "café"),
			readAs:  "text windows-1252 none", stats: counts(3, 3, "", false),
		},
		{
			name: "Windows-1252 and the bytes that it leaves out", content: "INFO \x80 \x93x\x94 \x81\x8d\x8f\x90\x9d\xff\n",
			records: `{"line_no":1,"timestamp":null,"level":"INFO","message":"€ “x” \u0081\u008d\u008f\u0090\u009dÿ"}`,
			readAs:  "text windows-1252 none", stats: counts(1, 1, "", false),
		},
		{
			name: "UTF-8 that is cut off, over-long or half a surrogate pair", content: "INFO 技\xe6\x8a\nINFO \xc0\xaf\nINFO \xed\xa0\x80é\n",
			records: record(1, "INFO", "技æŠ") + "," + record(2, "INFO", "À¯") + "," + record(3, "INFO", "í\u00a0€é"),
			readAs:  "text windows-1252 none", stats: counts(3, 3, "", false),
		},
		{
			name: "UTF-8 with a byte order mark", content: "\ufeff" + text,
			records: both, readAs: "text utf-8 none", stats: counts(3, 2, "", false),
		},
		{
			name: "UTF-16 little endian", content: "\xff\xfe" + wide(le, text),
			records: both, readAs: "text utf-16le none", stats: counts(3, 2, "", false),
		},
		{
			name: "UTF-16 big endian", content: "\xfe\xff" + wide(be, text),
			records: both, readAs: "text utf-16be none", stats: counts(3, 2, "", false),
		},
		{
			name: "UTF-16 little endian without a mark", content: wide(le, text),
			records: both, readAs: "text utf-16le none", stats: counts(3, 2, "", false),
		},
		{
			name: "UTF-16 big endian without a mark", content: wide(be, text),
			records: both, readAs: "text utf-16be none", stats: counts(3, 2, "", false),
		},
		{
			name:    "UTF-16 with halves of surrogate pairs and half a unit at the end",
			content: "\xff\xfe" + wide(le, "INFO ") + "\x00\xd8x\x00\x00\xdc\x00\xd8\x00\xd8\x00\xdc\n\x00" + wide(le, "WARN ") + "\x00\xd8y",
			records: record(1, "INFO", "\ufffdx\ufffd\ufffd\U00010000") + "," + record(2, "WARN", "\ufffd\ufffd"),
			readAs:  "text utf-16le none", stats: counts(2, 2, "", false),
		},
		{
			name: "CSV in UTF-16, JSON lines in Latin-1", file: "a.csv", content: "\xff\xfe" + wide(le, "level,msg\r\nWARN,é\r\n"),
			records: `{"level":"WARN","msg":"é"}`, readAs: "csv utf-16le none", stats: counts(2, 1, "", false),
		},
		{
			name: "JSON lines in Latin-1", file: "a.jsonl", content: "{\"msg\":\"\xe9\"}\n",
			records: `{"msg":"é"}`, readAs: "jsonl windows-1252 none", stats: counts(1, 1, "", false),
		},
		{
			name: "zeros in text are not UTF-16", content: strings.Repeat("\x00", 600) + "\nINFO after a crash\n",
			records: record(2, "INFO", "after a crash"), readAs: "text utf-8 none", stats: counts(2, 1, `"no_time_or_level":1`, false),
		},
		{
			name: "lines that are not text", content: "\x89PNG\x00\x01INFO \xff\nINFO \x00 is UTF-8\nplain\nINFO \xff\x02\n",
			records: `{"line_no":2,"timestamp":null,"level":"INFO","message":"\u0000 is UTF-8"}`,
			readAs:  "text utf-8 none", stats: counts(4, 1, `"no_time_or_level":1,"not_text":2`, false),
		},
		{
			// 5 MiB are 2.5 Mi units: 1024 a line.
			name: "the whole lines in 5 MiB of UTF-16", content: wide(le, strings.Repeat(strings.Repeat("x", 1023)+"\n", 2559)+"INFO last\n"+strings.Repeat("y", 1014)+"\nINFO beyond\n"),
			records: record(2560, "INFO", "last"), readAs: "text utf-16le none", stats: counts(2560, 1, `"no_time_or_level":2559`, true),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.file == "" {
				c.file = "a.log"
			}
			c.hold(t)
		})
	}
}

// TestReadsGzip holds log_transform to gzip files as they are rotated, and to
// damaged ones, of which nothing is read.
func TestReadsGzip(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	one, two := packed(t, "INFO one\n"), packed(t, "WARN two\n")
	plain := one[:3] + "\x00" + one[4:10] + one[strings.Index(one, "rotated")+8:]
	change := func(at int, by byte) string {
		b := []byte(one)
		b[(at+len(b))%len(b)] ^= by
		return string(b)
	}
	first, as := record(1, "INFO", "one"), "text utf-8 gzip"
	mib := packed(t, rep("INFO "+rep("w", 1018)+"\n", 1024))
	for _, c := range []logFile{
		{name: "one member", file: "app.log.gz", content: one, records: first, readAs: as, stats: counts(1, 1, "", false)},
		{name: "a header without fields", content: plain, records: first, readAs: as, stats: counts(1, 1, "", false)},
		{name: "a checksum of the header", content: one[:3] + "\x02" + one[4:10] + "??" + one[strings.Index(one, "rotated")+8:], records: first, readAs: as, stats: counts(1, 1, "", false)},
		{
			name: "many members, an empty one and zeros", content: one + rep(packed(t, ""), 3) + two + rep("\x00", 100) + one + rep("\x00", 512),
			records: first + "," + record(2, "WARN", "two") + "," + record(3, "INFO", "one"), readAs: as, stats: counts(3, 3, "", false),
		},
		{name: "nothing", content: packed(t, ""), readAs: as, stats: counts(0, 0, "", false)},
		{
			name: "the name before .gz tells the format", file: "a.JSONL.GZ", content: packed(t, `{"a":1}`+"\nINFO text\n"),
			records: `{"a":1}`, readAs: "jsonl utf-8 gzip", stats: counts(2, 1, `"not_a_json_object":1`, false),
		},
		{
			name: "UTF-16 in gzip", content: packed(t, "\xff\xfe"+wide(binary.LittleEndian, "INFO é\n")),
			records: record(1, "INFO", "é"), readAs: "text utf-16le gzip", stats: counts(1, 1, "", false),
		},
		{
			// It would be 4 GiB.
			name: "a bomb of 5 MiB and more is cut like any file", content: rep(mib, 4096), input: `,"limit":1`,
			records: record(1, "INFO", rep("w", 1018)), readAs: as, stats: counts(1, 1, "", true),
		},
		{
			name: "5 MiB are read whole", content: packed(t, rep("x", 100)+"\n"+rep("\n", 5<<20-108)+"INFO x\n"),
			readAs: as, stats: counts(100_000, 0, `"no_time_or_level":1`, true),
		},
		{
			name: "5 MiB and a byte are cut", content: packed(t, "INFO x\n"+rep("y", 5<<20-6)),
			records: record(1, "INFO", "x"), readAs: as, stats: counts(1, 1, "", true),
		},
		{name: "cut off in the header", content: one[:20], reason: "gzip"},
		{name: "cut off at the first field", content: one[:10], reason: "gzip"},
		{name: "cut off in the data", content: one[:len(one)-12], reason: "gzip"},
		{name: "cut off in the checksum", content: one[:len(one)-1], reason: "gzip"},
		{name: "cut off in the second member", content: one + two[:len(two)-9], reason: "gzip"},
		{name: "a wrong length", content: change(-1, 1), reason: "gzip"},
		{name: "a wrong checksum", content: change(-8, 1), reason: "gzip"},
		{name: "changed data", content: change(-12, 0x10), reason: "gzip"},
		{name: "an unknown flag", content: change(3, 0x20), reason: "gzip"},
		{name: "something else behind it", content: one + "INFO two\n", reason: "gzip"},
		{name: "zip", content: "PK\x03\x04\x14\x00", reason: "compressed"},
		{name: "bzip2", content: "BZh91AY&SY\x00", reason: "compressed"},
		{name: "xz", content: "\xfd7zXZ\x00\x00", reason: "compressed"},
		{name: "zstd", content: "\x28\xb5\x2f\xfd\x00", reason: "compressed"},
		{name: "lz4", content: "\x04\x22\x4d\x18\x00", reason: "compressed"},
		{name: "7z", content: "7z\xbc\xaf\x27\x1c\x00", reason: "compressed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.file == "" {
				c.file = "a.log.gz"
			}
			c.hold(t)
		})
	}
}

// TestNamesFilesWithoutGzip holds that the artifact of app.log.gz is that of app.log.
func TestNamesFilesWithoutGzip(t *testing.T) {
	t.Parallel()
	for file, name := range map[string]string{"app.log.gz": "app.jsonl", "app.gz": "app.jsonl", ".gz": ".gz.jsonl"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			writeFile(t, data, file, packed(t, "INFO x\n"))
			answerAlike(t, "log_transform", data, testCase{
				Input: json.RawMessage(`{"input_path":"data/` + file + `","output":"file"}`),
				Want: json.RawMessage(`{"output_path":"work/` + name + `","read_as":{"format":"text","encoding":"utf-8","compression":"gzip"},` +
					`"stats":{` + counts(1, 1, "", false) + `}}`),
				File: &wantFile{Name: name, Lines: []string{record(1, "INFO", "x")}},
			})
		})
	}
}

// TestTakesColoursOut holds log_transform to lines as programs write them to
// terminals.
func TestTakesColoursOut(t *testing.T) {
	t.Parallel()
	for _, c := range []logFile{
		{
			name: "colours around time, level and words", content: "\x1b[90m2026-01-05T08:00:00Z\x1b[0m \x1b[1;31mERROR\x1b[0m \x1b[38;5;12mdisk\x1b[m full\n",
			records: `{"line_no":1,"timestamp":"2026-01-05T08:00:00Z","level":"ERROR","message":"disk full"}`,
			readAs:  "text utf-8 none", stats: counts(1, 1, "", false),
		},
		{
			name: "links, titles, character sets and private sequences", content: "\x1b]0;title\x07INFO\x1b(B \x1b]8;;http://x/\x1b\\word\x1b]8;;\x1b\\\x1b[?25l \x1b[2 qend\x1b[K\n",
			records: record(1, "INFO", "word end"), readAs: "text utf-8 none", stats: counts(1, 1, "", false),
		},
		{
			name: "what is not a sequence stays", content: "INFO a\x1bb \x1b\nINFO \x1b[31\nINFO \x1b[3\x01m\nINFO \x1b]0;x\nINFO \x1b[\x1b[1mx\n",
			records: `{"line_no":1,"timestamp":null,"level":"INFO","message":"a\u001bb \u001b"},{"line_no":2,"timestamp":null,"level":"INFO","message":"\u001b[31"},` +
				`{"line_no":3,"timestamp":null,"level":"INFO","message":"\u001b[3\u0001m"},{"line_no":4,"timestamp":null,"level":"INFO","message":"\u001b]0;x"},` +
				`{"line_no":5,"timestamp":null,"level":"INFO","message":"\u001b[x"}`,
			readAs: "text utf-8 none", stats: counts(5, 5, "", false),
		},
		{name: "a line of colours alone is blank", content: "\x1b[0m\n \x1b[1m\x1b[0m\n", readAs: "text utf-8 none", stats: counts(2, 0, "", false)},
		{
			name: "colours around JSON and in its level", file: "a.jsonl", content: "\x1b[32m{\"level\":\"\\u001b[33mWARN\\u001b[39m\",\"msg\":\"\\u001b[1mx\"}\x1b[0m\n",
			input:   `,"rules":{"level_map":{"WARN":"WARNING"}}`,
			records: `{"level":"WARNING","msg":"\u001b[1mx"}`, readAs: "jsonl utf-8 none", stats: counts(1, 1, "", false),
		},
		{
			name: "colours in CSV", file: "a.csv", content: "\x1b[1mlevel,msg\x1b[0m\n\x1b[31mERROR\x1b[0m,x\n",
			records: `{"level":"ERROR","msg":"x"}`, readAs: "csv utf-8 none", stats: counts(2, 1, "", false),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.file == "" {
				c.file = "a.log"
			}
			c.hold(t)
		})
	}
}

// TestTellsJSONLinesByContent holds that JSON lines are read as such where the
// file's name says nothing, and no text is lost for it.
func TestTellsJSONLinesByContent(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	const object = `{"level":"INFO","n":1}`
	for _, c := range []logFile{
		{
			name: "JSON lines in a .log", content: object + "\n\n" + `{"level":"WARN","time":"2026-01-05T08:00:00Z"}` + "\n", input: `,"rules":{"level_map":{"WARN":"W"}}`,
			records: object + `,{"level":"W","time":"2026-01-05T08:00:00Z"}`, readAs: "jsonl utf-8 none", stats: counts(3, 2, "", false),
		},
		{
			name: "text between JSON lines is read as text", content: "INFO begins\n" + object + "\n" + object + "\nnothing\n{\"cut\n",
			records: record(1, "INFO", "begins") + "," + object + "," + object, readAs: "jsonl utf-8 none", stats: counts(5, 3, `"not_a_json_object":2`, false),
		},
		{
			name: "half of the lines are not enough", content: "INFO a\n" + object + "\n", input: `,"limit":1`,
			records: record(1, "INFO", "a"), readAs: "text utf-8 none", stats: counts(1, 1, "", true),
		},
		{
			name: "the first 20 lines tell", content: rep(object+"\n", 11) + rep("INFO x\n", 30), input: `,"limit":1`,
			records: object, readAs: "jsonl utf-8 none", stats: counts(1, 1, "", true),
		},
		{
			name: "lines after the first 20 do not", content: rep("INFO x\n", 10) + rep(object+"\n", 30), input: `,"limit":1`,
			records: record(1, "INFO", "x"), readAs: "text utf-8 none", stats: counts(1, 1, "", true),
		},
		{
			name: "the caller's format holds", content: object + "\n", input: `,"format":"text"`,
			records: record(1, "INFO", `{"level":" ","n":1}`), readAs: "text utf-8 none", stats: counts(1, 1, "", false),
		},
		{
			name: "the caller's format is strict", content: object + "\nINFO text\n", input: `,"format":"jsonl"`,
			records: object, readAs: "jsonl utf-8 none", stats: counts(2, 1, `"not_a_json_object":1`, false),
		},
		{
			name: "a JSON array is not lines", content: "[\n" + object + ",\n" + object + "\n]\n", input: `,"limit":1`,
			records: record(2, "INFO", `{"level":" ","n":1},`), readAs: "text utf-8 none", stats: counts(2, 1, `"no_time_or_level":1`, true),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.file = "a.log"
			c.hold(t)
		})
	}
}

// TestSearchesEncodingsAndCountsTheRest holds file_search to what it reads, and to
// the count of everything that it leaves out.
func TestSearchesEncodingsAndCountsTheRest(t *testing.T) {
	t.Parallel()
	rep := strings.Repeat
	data, outside := t.TempDir(), t.TempDir()
	bomb := packed(t, rep("needle\n", 1<<20))
	for name, content := range map[string]string{
		"read/colours.txt":    "\x1b[31mneedle\x1b[0m\n",
		"read/empty.gz":       packed(t, ""),
		"read/gzip.log.gz":    packed(t, "one\n") + packed(t, "needle two\n"),
		"read/latin1.txt":     "caf\xe9 needle\n",
		"read/utf16.txt":      "\xff\xfe" + wide(binary.LittleEndian, "one\r\nneedle é\r\n"),
		"read/utf16bare":      wide(binary.BigEndian, "needle\n"),
		"skip/binary.dat":     "needle\x00\n",
		"skip/binary.gz":      packed(t, "needle \x00\x01"),
		"skip/binary2.dat":    "needle \xff\x01\n",
		"skip/bomb.gz":        bomb,
		"skip/bomb2.gz":       bomb + packed(t, ""),                                              // its end tells nothing
		"skip/cut.gz":         packed(t, rep("needle, ", 99)+rep("0123456789abcdef\n", 99))[:60], // its end tells of gigabytes
		"skip/short.gz":       "\x1f\x8b\x08",
		"skip/large.txt":      "needle\n" + rep("x", 5<<20),
		"skip/utf16zeros.txt": "\xff\xfe" + wide(binary.LittleEndian, "needle \x00\n"),
		"hidden/second.txt":   "needle\n",
		"hidden/other.md":     "needle\x00\n",
	} {
		writeFile(t, data, name, content)
	}
	writeFile(t, outside, "x.txt", "needle\n")
	deep := "deep/" + rep("d/", 32)
	writeFile(t, data, deep+"x.txt", "needle\n")
	for _, make := range []error{
		os.Symlink("x.txt", filepath.Join(data, "skip", "link.txt")),
		os.Symlink("x.md", filepath.Join(data, "hidden", "link.md")),
		os.Link(filepath.Join(data, "hidden", "second.txt"), filepath.Join(outside, "second.txt")),
	} {
		musttest.Do(t, make)
	}
	found := func(path string, line int, snippet string) string {
		return fmt.Sprintf(`{"path":"./data/%s","line_no":%d,"snippet":%s}`, path, line, snippet)
	}
	for _, c := range []struct{ name, input, want string }{
		{
			"what is read", `"root_dir":"data/read"`,
			`"matches":[` + strings.Join([]string{
				found("read/colours.txt", 1, `"\u001b[31mneedle\u001b[0m"`), found("read/gzip.log.gz", 2, `"needle two"`), found("read/latin1.txt", 1, `"café needle"`),
				found("read/utf16.txt", 2, `"needle é"`), found("read/utf16bare", 1, `"needle"`),
			}, ",") + `],"skipped":{},"truncated":false`,
		},
		{
			"what is left out", `"root_dir":"data/skip"`,
			`"matches":[],"skipped":{"binary":4,"damaged_gzip":2,"link":1,"too_large":3},"truncated":false`,
		},
		{"a second name", `"glob":"hidden/*.txt"`, `"matches":[],"skipped":{"too_deep":1,"unreadable":1},"truncated":true`},
		{"only files that match the glob", `"root_dir":"data/skip","glob":"l*"`, `"matches":[],"skipped":{"link":1,"too_large":1},"truncated":false`},
		{"a folder that is too deep", `"root_dir":"data/deep"`, `"matches":[` + found(deep+"x.txt", 1, `"needle"`) + `],"skipped":{},"truncated":false`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answerAlike(t, "file_search", data, testCase{
				Input: json.RawMessage(`{"query":"needle","limit":100,` + c.input + `}`),
				Want:  json.RawMessage(`{` + c.want + `}`),
			})
		})
	}
}

// TestUnpacksAtMost16MiBInOneSearch holds file_search to the sum of what it unpacks:
// files that each keep to 5 MiB could use up the time of a search together.
func TestUnpacksAtMost16MiBInOneSearch(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	four, damaged := packed(t, strings.Repeat("x", 4<<20)), packed(t, strings.Repeat("x", 6<<20))
	for i := range 3 {
		writeFile(t, data, fmt.Sprintf("a%02d.gz", i), four)
	}
	writeFile(t, data, "b.gz", damaged[:4065]) // counts as the 4 MiB that 4065 bytes can hold
	writeFile(t, data, "c.gz", packed(t, "needle, beyond the limit\n"))
	writeFile(t, data, "d.txt", "needle\n")
	one := testCase{
		Input: json.RawMessage(`{"query":"needle"}`),
		Want:  json.RawMessage(`{"matches":[{"path":"./data/d.txt","line_no":1,"snippet":"needle"}],"skipped":{"damaged_gzip":1,"unpack_limit":1},"truncated":false}`),
	}
	answerAlike(t, "file_search", data, one)
	musttest.Do(t, os.Remove(filepath.Join(data, "a00.gz")))
	one.Want = json.RawMessage(`{"matches":[{"path":"./data/c.gz","line_no":1,"snippet":"needle, beyond the limit"},` +
		`{"path":"./data/d.txt","line_no":1,"snippet":"needle"}],"skipped":{"damaged_gzip":1},"truncated":false}`)
	answerAlike(t, "file_search", data, one)
}
