package skills_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// dataFolder is a copy of the sample data with the folder odd beside it: files
// that no repository should hold.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	musttest.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "data"))))
	huge := strings.Repeat(strings.Repeat("x", 99)+"\n", 52_430) // a little over 5 MiB
	for name, content := range map[string]string{
		"odd/binary.dat":        "needle\x00needle\n",
		"odd/latin1.txt":        "needle \xe9\n",
		"odd/bom.txt":           "\ufeffneedle after a byte order mark\n",
		"odd/crlf.txt":          "one\r\nneedle two\r\n",
		"odd/last.txt":          "needle without a line end",
		"odd/separators.txt":    "a\u2028needle\x0b\x0c\u0085z\n",
		"odd/empty.txt":         "",
		"odd/huge.txt":          "needle\n" + huge,
		"odd/limit.txt":         "needle at the limit\n" + huge[:5<<20-20],
		"odd/.hidden":           "needle in a hidden file\n",
		"order/a.txt":           "order\n",
		"order/a/b.txt":         "order\n",
		"order/a-b.txt":         "order\n",
		"order/a0.txt":          "order\n",
		"order/é.txt":           "order\n",
		"order/😀.txt":           "order\n",
		"order/｡.txt":           "order\n",
		"order/a/[x].txt":       "brackets\n",
		"order/A.TXT":           "order upper\n",
		"logs2/bad.jsonl":       badJSONLines,
		"logs2/numbers.jsonl":   numberLines,
		"logs2/bad.csv":         badCommaLines,
		"logs2/header.csv":      "a,,c\n1,2,3\n",
		"logs2/twice.csv":       "a,a\n1,2\n",
		"logs2/empty.log":       "",
		"logs2/blank.log":       "\n \t\n\r\n",
		"logs2/bom.csv":         "\ufefflevel,msg\r\nWARN,crlf\r\n",
		"logs2/shapes.log":      logShapes,
		"logs2/broken.log":      "2026-01-05T08:00:00Z INFO ok\n2026-01-05T08:00:00Z INFO \xff\xfe\n" + "INFO " + strings.Repeat("x", 64<<10) + "\nINFO " + strings.Repeat("y", 20) + "\n",
		"logs2/noextension":     "INFO plain\n",
		"logs2/.csv":            "a\n1\n",
		"logs2/two.dots.LOG":    "INFO two\n",
		"logs2/events.ndjson":   "{\"a\":1}\n",
		"logs2/quote \" 技能.log": "INFO odd name\n",
	} {
		writeFile(t, dir, name, content)
	}
	return dir
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	musttest.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)))
}

const badJSONLines = `{"level":"WARN","n":1}
{"level":"WARN",
{"n":NaN}
{"n":Infinity}
{"n":-Infinity}
{"n":1e999}
{"half":"\ud800"}
{"pair":"\ud83d\ude00"}
[1]
"text"
null
{"a":1} {"b":2}
{"a":1,}
{'a':1}
{"a":01}
` + "{\"tab\":\"\t\"}\n" + `  {"spaces":true}  
{"twice":1,"twice":2}
{"level":5}
{ "a" : [ 1 , "x" ,{ "b" : "\u0063" , "level" : "WARN" } ] , "level" : "WA\u0052N" }
{"twice":"\ud800","twice":1}
`

const numberLines = `{"n":[1.0,1e5,1E+16,1e15,123456789012345678901234567890,-0,-0.0,1e-5,0.0001,1.5e-7,0.1,5e-324,1e-400,1.7976931348623157e308,9007199254740993,100.50]}
{"s":"q\" b\\ s\/ n\n t\t r\r b\b f\f u\u0001 del\u007f ls\u2028 é 技 😀 <&>","z":null,"a":{"y":[],"b":{}}}
`

const badCommaLines = `level,msg
WARN,plain
"INFO","quoted, with ""quotes"""
INFO,one,too many
INFO
ERROR,bare " quote
ERROR,"never closed
ERROR,"text"after
,

INFO,""
`

const logShapes = `2026/01/05 08:00:00 INFO go style
10.0.0.1 - - [05/Jan/2026:08:00:00 +0000] "GET / HTTP/1.1" 200
INFO: no time
WARNING - a dash
(FATAL) in brackets <b>
2026-01-05T08:00:00 lower info stays text
INFORMATION is no level
2026-01-05T08:00:00ZWARN|glued
ERROR -5 degrees
错误 磁盘
2026-01-05T08:00:00Z 级别=错误, 消息
2026-01-05T08:00:00Z
  2026-01-05T08:00:00+0800   DEBUG   spaces   inside  
[1736064000.123] NOTICE epoch
x]INFO (y
`
