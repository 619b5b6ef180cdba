package llm

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// sentence is one in both languages.
type sentence struct{ zh, en string }

// Why a message gives no arguments.
var (
	noQuery   = &sentence{"请写出要搜索的内容，例如：搜索 openSkill", "Say what to look for, like: find openSkill in *.md"}
	longQuery = &sentence{
		fmt.Sprintf("搜索内容须在一行之内，且不超过 %d 个字符。", maxQuery),
		fmt.Sprintf("The search text must be one line of at most %d characters.", maxQuery),
	}
	noNumbers   = &sentence{"请写出要计算的数字，例如：平均 10.5 9.9 11.2", "Say which numbers, like: mean 10.5 9.9 11.2"}
	wrongNumber = &sentence{"有一个数字超出了双精度浮点数的范围。", "One of the numbers is beyond the range of a double."}
	manyNumbers = &sentence{fmt.Sprintf("数字过多，最多 %d 个。", maxNumbers), fmt.Sprintf("There are too many numbers; at most %d are accepted.", maxNumbers)}
)

// echoing takes what stands behind the colon.
func echoing(text string, to route) (any, *sentence) {
	return map[string]string{"text": strings.TrimSpace(text[to.end:])}, nil
}

// looked is how much of a message is looked at for phrases and paths, in bytes.
const looked = 8 << 10

// head gives the beginning of s, of at most looked bytes.
func head(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), looked)], "")
}

// A path below data, spelled as skills have it. It ends with its extension, since in
// Chinese the sentence may go on without a space; one without an extension ends where
// Chinese begins.
const (
	stops    = `\s"'` + "`" + `“”‘’「」『』«»《》，。；、：？！（）()<>|,;`
	dataPath = `(?:\./)?data/(?:[^` + stops + `*]*?(?:\.[A-Za-z0-9]{1,8})+|[^` + stops + `*\p{Han}]*)`
	globbed  = `[^` + stops + `\p{Han}]*\*[^` + stops + `\p{Han}]*`
)

var (
	place = regexp.MustCompile(`(?i)(?:\b(?:in|within|under|inside|from)\s+(?:the\s+|all\s+)?|[在从于]\s*)?(` + globbed + `|` + dataPath + `)(?:\s+(?:files?|folders?|director(?:y|ies))\b)?\s*(?:文件夹|目录|文件)?(?:里面|里|中|下面|下)?的?`)

	// What stands between the verb and what is looked for, and behind that.
	leading  = regexp.MustCompile(`(?i)^(?:[\s:：,，]+|-[a-z]+\s+|(?:me|for)\s+|(?:all\s+|any\s+|the\s+)*(?:lines?|files?|texts?|words?|occurrences|mentions)\s+(?:with|containing|that\s+contains?|of)\s+|the\s+(?:word|text|phrase)\s+|一下|(?:所有|全部)?(?:data\s*)?(?:文件夹|文件|文档|资料|数据|目录)(?:里面|里|中|下面|下)的?|包含|含有|关于|关键词|关键字)+`)
	trailing = regexp.MustCompile(`(?i)(?:\s+in\s+(?:the\s+|my\s+|all\s+)*(?:files?|documents?|docs|data|folder)|的(?:文件|行|内容|文档|资料|日志|地方)|\s+please|[\s.。!！?？,，;；:：]+)+$`)
)

type search struct {
	Query string `json:"query"`
	Root  string `json:"root_dir,omitempty"`
	Glob  string `json:"glob,omitempty"`
}

// maxQuery is what file_search takes, in characters.
const maxQuery = 1000

// searching reads what to look for: a phrase in quotes, or the words behind the verb; and
// where: a path below data, names with *, or both.
func searching(text string, to route) (any, *sentence) {
	before, rest := head(text[:to.begin]), head(text[to.end:])
	var s search
	var isQuoted bool
	if s.Query, isQuoted = quoted(rest); !isQuoted {
		s.Query, isQuoted = quoted(before)
	}
	if isQuoted { // what is in quotes is no place
		rest, before = strings.Replace(rest, s.Query, " ", 1), strings.Replace(before, s.Query, " ", 1)
	}
	for _, part := range []string{rest, before} {
		for _, at := range place.FindAllStringSubmatch(part, -1) {
			s.locate(at[1])
		}
	}
	if !isQuoted {
		s.Query, _, _ = strings.Cut(strings.TrimSpace(place.ReplaceAllString(rest, " ")), "\n")
		s.Query = leading.ReplaceAllString(s.Query, "")
		s.Query = strings.TrimSpace(trailing.ReplaceAllString(s.Query, ""))
	}
	switch {
	case s.Query == "":
		return nil, noQuery
	case utf8.RuneCountInString(s.Query) > maxQuery || strings.ContainsAny(s.Query, "\r\n"):
		return nil, longQuery
	}
	return s, nil
}

// locate takes a path or names. Names without a folder are meant at any depth.
func (s *search) locate(where string) {
	where = strings.TrimRight(where, ".!?:")
	names := ""
	if i := strings.IndexByte(where, '*'); i >= 0 {
		j := strings.LastIndexByte(where[:i], '/') + 1
		where, names = where[:j], where[j:]
		if !strings.HasPrefix(strings.TrimPrefix(where, "./"), "data/") {
			where, names = "", where+names
		}
	} else if ext := path.Ext(where); ext != "" && ext != "." {
		where, names = path.Dir(where), path.Base(where)
	}
	if names != "" && s.Glob == "" {
		s.Glob = names
		if where == "" && !strings.Contains(names, "/") {
			s.Glob = "**/" + names
		}
	}
	if where != "" && s.Root == "" {
		s.Root = below(where)
	}
}

// below spells a path as skills have it.
func below(p string) string {
	return "./" + strings.TrimRight(strings.TrimPrefix(p, "./"), "/")
}

type calculation struct {
	Numbers []json.Number `json:"numbers"`
	Ops     []string      `json:"ops"`
	Compare *pair         `json:"compare,omitempty"`
}

type pair struct {
	A json.Number `json:"a"`
	B json.Number `json:"b"`
}

// operations are those of the skill, and the words for them.
var operations = []struct {
	name  string
	words []string
}{
	{"mean", []string{"平均", "均值", "mean", "average"}},
	{"median", []string{"中位数", "median"}},
	{"min", []string{"最小", "min", "minimum"}},
	{"max", []string{"最大", "max", "maximum"}},
	{"sum", []string{"总和", "求和", "合计", "sum", "total"}},
}

// maxNumbers is what calculator takes.
const maxNumbers = 100_000

// calculating reads all numbers, and what to do with them. Two that are to be compared
// are compared, beside what else is asked.
func calculating(text string, _ route) (any, *sentence) {
	numbers, wrong := numbersIn(text)
	switch {
	case wrong != nil:
		return nil, wrong
	case len(numbers) == 0:
		return nil, noNumbers
	}
	c := calculation{Numbers: numbers}
	low := lower(text)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return find(low, w) >= 0 })
	}
	for _, o := range operations {
		if has(o.words) {
			c.Ops = append(c.Ops, o.name)
		}
	}
	if has([]string{"比较", "compare"}) && len(numbers) == 2 {
		c.Compare = &pair{numbers[0], numbers[1]}
		if c.Ops == nil {
			c.Ops = []string{"min", "max"} // the skill wants at least one
		}
	}
	if c.Ops == nil {
		c.Ops = []string{"mean", "median", "min", "max"}
	}
	return c, nil
}

var number = regexp.MustCompile(`[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?`)

// narrow makes the wide digits and signs of Chinese texts those of numbers.
func narrow(r rune) rune {
	switch {
	case r >= '０' && r <= '９':
		return r - '０' + '0'
	case r == '．':
		return '.'
	case r == '－' || r == '−':
		return '-'
	case r == '＋':
		return '+'
	}
	return r
}

// numbersIn gives the numbers of a text as JSON has them. A comma is between two numbers,
// not within one; a minus behind a digit or letter is a dash; and what is part of a name,
// like v2, is none.
func numbersIn(text string) ([]json.Number, *sentence) {
	text = strings.Map(narrow, text)
	var out []json.Number
	for _, at := range number.FindAllStringIndex(text, -1) {
		found := text[at[0]:at[1]]
		if before, n := utf8.DecodeLastRuneInString(text[:at[0]]); n > 0 && (joins(before) || before == '.') {
			if found[0] != '+' && found[0] != '-' {
				continue
			}
			found = found[1:]
		}
		f, err := strconv.ParseFloat(found, 64)
		if err != nil || math.IsInf(f, 0) {
			return nil, wrongNumber
		}
		if len(out) == maxNumbers {
			return nil, manyNumbers
		}
		out = append(out, digits(found, f))
	}
	return out, nil
}

// digits keeps the digits of a number, of which a double may have fewer.
func digits(found string, f float64) json.Number {
	sign := ""
	switch found[0] {
	case '-':
		sign, found = "-", found[1:]
	case '+':
		found = found[1:]
	}
	if strings.ContainsAny(found, "eE") || len(found) > 40 {
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
	}
	found = strings.TrimLeft(found, "0")
	if found == "" || found[0] == '.' {
		found = "0" + found
	}
	return json.Number(sign + found)
}

type transformation struct {
	Path  string `json:"input_path"`
	Limit int    `json:"limit"`
}

// The log that comes with openSkill, and how many records are asked for: a person reads
// the first ones.
const (
	defaultLog = "./data/logs/app.log"
	records    = 20
)

var (
	inData  = regexp.MustCompile(`(?i)(?:^|[` + stops + `\p{Han}])(` + dataPath + `)`)
	logName = regexp.MustCompile(`(?i)(?:^|[` + stops + `\p{Han}])((?:\.{0,2}/)?(?:[\w.-]+/)*[\w.-]*\.(?:log|jsonl|ndjson|csv|txt))(?:$|[` + stops + `\p{Han}.])`)
	outside = regexp.MustCompile(`(?:^|[` + stops + `])((?:\.\.|~)?/[^` + stops + `]+)`)
)

// transforming reads which log is meant. A name alone is looked for beside the logs that
// come with openSkill. Paths that are not below data are handed on as they are: it is for
// the host to refuse them, in its words.
func transforming(text string, _ route) (any, *sentence) {
	text = head(text)
	t := transformation{defaultLog, records}
	if m := inData.FindStringSubmatch(text); m != nil && len(strings.TrimPrefix(m[1], "./")) > len("data/") {
		t.Path = below(strings.TrimRight(m[1], ".!?:"))
	} else if m := logName.FindStringSubmatch(text); m != nil {
		switch p := m[1]; {
		case strings.HasPrefix(p, "/") || strings.Contains(p, ".."):
			t.Path = p
		case strings.Contains(p, "/"):
			t.Path = "./data/" + strings.TrimPrefix(p, "./")
		case p[0] == '.': // a kind of file, like .log
		default:
			t.Path = "./data/logs/" + p
		}
	} else if m := outside.FindStringSubmatch(text); m != nil {
		t.Path = m[1]
	}
	return t, nil
}
