package capability

import (
	"encoding/json"
	"strings"
	"unicode"

	"openskill/host/pyast"
	"openskill/host/tools/ordered"
)

// docstring is what a docstring says, in whichever of the styles it is written: Google's,
// NumPy's, reST's, or lists as people and models write them.
type docstring struct {
	summary string // what stands before the first section
	params  map[string]docParam
	returns docParam
}

// docParam is what is said of one parameter.
type docParam struct {
	kind string // its type as it is written; ""
	text string
}

// sections are the titles of sections; what is true has parameters.
var sections = map[string]bool{
	"args": true, "arguments": true, "parameters": true, "params": true, "keyword args": true, "keyword arguments": true,
	"other parameters": true, "attributes": true, "fields": true, "\u53c2\u6570": true, "\u8f93\u5165": true, "\u5c5e\u6027": true,
	"returns": false, "return": false, "yields": false, "raises": false, "except": false, "exceptions": false, "warns": false, "example": false, "examples": false,
	"note": false, "notes": false, "see also": false, "references": false, "todo": false, "warning": false, "warnings": false, "usage": false,
	"\u8fd4\u56de": false, "\u8fd4\u56de\u503c": false, "\u793a\u4f8b": false, "\u5f02\u5e38": false, "\u8f93\u51fa": false,
}

var returning = map[string]bool{"returns": true, "return": true, "yields": true, "\u8fd4\u56de": true, "\u8fd4\u56de\u503c": true, "\u8f93\u51fa": true}

// parseDoc reads a docstring whose indentation is taken away.
func parseDoc(text string) docstring {
	d := docstring{params: map[string]docParam{}}
	lines := strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n")
	var summary []string
	told := false // a section began: the summary is over
	for i := 0; i < len(lines); {
		line := lines[i]
		if title, next := underlined(lines, i); title != "" {
			told = true
			end := next
			for end < len(lines) {
				if t, _ := underlined(lines, end); t != "" {
					break
				}
				end++
			}
			d.numpy(title, lines[next:end])
			i = end
			continue
		}
		if title := titled(line); title != "" && followed(lines, i) {
			told = true
			i = d.google(title, lines, i+1)
			continue
		}
		if name, rest, ok := restField(line); ok {
			told = true
			body := []string{rest}
			for i++; i < len(lines); i++ {
				if _, _, another := restField(lines[i]); another || strings.TrimSpace(lines[i]) == "" || titled(lines[i]) != "" {
					break
				}
				body = append(body, lines[i])
			}
			d.rest(name, joined(body))
			continue
		}
		if !told {
			summary = append(summary, line)
		}
		i++
	}
	d.summary = joined(summary)
	return d
}

// joined makes one line of several.
func joined(lines []string) string {
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// underlined finds the title of a NumPy section at a line, and the line behind it.
func underlined(lines []string, i int) (string, int) {
	if i+1 >= len(lines) {
		return "", 0
	}
	rule := strings.TrimSpace(lines[i+1])
	title := strings.ToLower(strings.TrimSpace(lines[i]))
	_, known := sections[title]
	if !known || len(rule) < 3 || strings.Trim(rule, "-") != "" && strings.Trim(rule, "=") != "" {
		return "", 0
	}
	return title, i + 2
}

// titled gives the title of a Google section.
func titled(line string) string {
	s := strings.TrimSpace(line)
	s = strings.TrimSuffix(strings.Trim(s, "*"), "**")
	t, ok := strings.CutSuffix(s, ":")
	if !ok {
		if t, ok = strings.CutSuffix(s, "\uff1a"); !ok {
			return ""
		}
	}
	t = strings.ToLower(strings.TrimSpace(strings.Trim(t, "*# ")))
	if _, known := sections[t]; !known {
		return ""
	}
	return t
}

// followed reports whether a title has something below it that belongs to it.
func followed(lines []string, i int) bool {
	for _, l := range lines[i+1:] {
		if !blank(l) {
			return true
		}
	}
	return false
}

// google reads the section that begins at a line, and gives the line behind it.
func (d *docstring) google(title string, lines []string, i int) int {
	header := indentation(lines[i-1])
	base := -1
	var body []string
	for ; i < len(lines); i++ {
		line := lines[i]
		if blank(line) {
			if base == header && base >= 0 && len(body) > 0 { // without indentation an empty line ends it
				i++
				break
			}
			body = append(body, "")
			continue
		}
		n := indentation(line)
		if base < 0 {
			base = n
		}
		if titled(line) != "" && n <= header {
			break
		}
		if _, _, another := restField(line); another && n <= header {
			break
		}
		if base > header && n <= header || n < base && n <= header {
			break
		}
		body = append(body, line)
	}
	d.section(title, body, max(base, 0), false)
	return i
}

// numpy reads the body of a section with an underlined title.
func (d *docstring) numpy(title string, body []string) {
	base := 0
	for _, l := range body {
		if !blank(l) {
			base = indentation(l)
			break
		}
	}
	d.section(title, body, base, true)
}

// section reads the items of a section: lines at the base are items, those deeper go on.
func (d *docstring) section(title string, body []string, base int, numpy bool) {
	if returning[title] {
		d.result(body, base, numpy)
		return
	}
	if !sections[title] {
		return
	}
	var names []string
	var kind string
	var text []string
	flush := func() {
		for _, name := range names {
			d.add(name, kind, joined(text))
		}
		names, kind, text = nil, "", nil
	}
	for _, line := range body {
		if blank(line) {
			continue
		}
		if indentation(line) > base {
			text = append(text, line)
			continue
		}
		n, k, t, ok := item(strings.TrimSpace(line), numpy)
		if !ok {
			text = append(text, line)
			continue
		}
		flush()
		names, kind = n, k
		if t != "" {
			text = []string{t}
		}
	}
	flush()
}

// result reads what is returned: a type, a text, or both.
func (d *docstring) result(body []string, base int, numpy bool) {
	var lines []string
	for _, l := range body {
		if !blank(l) {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return
	}
	first := strings.TrimSpace(lines[0])
	if numpy {
		if _, k, ok := cutColon(first); ok { // name : type
			first = k
		}
		d.returns = docParam{first, joined(lines[1:])}
		return
	}
	if kind, text, ok := cutColon(first); ok && !strings.Contains(kind, " ") || ok && looksLikeType(kind) {
		d.returns = docParam{kind, joined(append([]string{text}, lines[1:]...))}
		return
	}
	d.returns = docParam{"", joined(lines)}
}

func looksLikeType(s string) bool { return strings.ContainsAny(s, "[|") && len(s) < 80 }

// add keeps what is said first.
func (d *docstring) add(name, kind, text string) {
	name = strings.TrimLeft(name, "*")
	p := d.params[name]
	if p.kind == "" {
		p.kind = kind
	}
	if p.text == "" {
		p.text = text
	}
	if p.kind == "" { // "the first number (int)", as models write it
		if open := strings.LastIndexByte(p.text, '('); open > 0 && strings.HasSuffix(p.text, ")") {
			if inner := p.text[open+1 : len(p.text)-1]; docWords[strings.ToLower(inner)] != "" {
				p.kind, p.text = inner, strings.TrimSpace(p.text[:open])
			}
		}
	}
	d.params[name] = p
}

// item reads the first line of an item: names, a type, and what is said.
func item(line string, numpy bool) (names []string, kind, text string, ok bool) {
	for _, mark := range []string{"- ", "* ", "+ ", "\u2022 "} {
		line = strings.TrimPrefix(line, mark)
	}
	head, text, cut := cutColon(line)
	if !cut {
		head, text = line, ""
		if before, after, dash := strings.Cut(line, " -- "); dash {
			head, text, cut = before, after, true
		} else if before, after, dash := strings.Cut(line, " - "); dash {
			head, text, cut = before, after, true
		}
	}
	head = strings.TrimSpace(head)
	if numpy {
		kind = text
		for _, n := range strings.Split(head, ",") {
			if n = bare(n); !isName(n) {
				return nil, "", "", false
			}
			names = append(names, n)
		}
		return names, kind, "", true
	}
	if open := strings.IndexByte(head, '('); open > 0 && strings.HasSuffix(head, ")") {
		kind, head = strings.TrimSpace(head[open+1:len(head)-1]), strings.TrimSpace(head[:open])
	}
	if !cut && kind == "" && !isName(bare(head)) {
		return nil, "", "", false
	}
	for _, n := range strings.Split(head, ",") {
		if n = bare(n); !isName(n) {
			return nil, "", "", false
		}
		names = append(names, n)
	}
	if kind == "" && strings.HasPrefix(text, "(") { // x: (int) the first number
		if end := strings.IndexByte(text, ')'); end > 0 && end < 40 {
			if inner := text[1:end]; docWords[strings.ToLower(inner)] != "" {
				kind, text = inner, strings.TrimSpace(text[end+1:])
			}
		}
	}
	return names, kind, text, true
}

// bare takes marks of emphasis and code away from a name.
func bare(s string) string { return strings.TrimLeft(strings.Trim(strings.TrimSpace(s), "`\"'*"), "*") }

func isName(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}

// cutColon cuts at the first colon outside of brackets, ASCII's or the wide one.
func cutColon(s string) (before, after string, ok bool) {
	depth := 0
	for i, r := range s {
		switch r {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ':', '\uff1a':
			if depth <= 0 {
				return strings.TrimSpace(s[:i]), strings.TrimSpace(s[i+len(string(r)):]), true
			}
		}
	}
	return s, "", false
}

// restField reads :param int x: text, and @param x: text.
func restField(line string) (field, text string, ok bool) {
	s := strings.TrimSpace(line)
	if len(s) < 4 || s[0] != ':' && s[0] != '@' {
		return "", "", false
	}
	field, text, ok = cutColon(s[1:])
	if !ok {
		return "", "", false
	}
	word, _, _ := strings.Cut(field, " ")
	switch word {
	case "param", "parameter", "arg", "argument", "key", "keyword", "type", "return", "returns", "rtype", "raise", "raises",
		"except", "exception", "yield", "yields", "ivar", "var", "cvar", "attribute", "vartype", "kwarg", "meta":
		return field, text, true
	}
	return "", "", false
}

func (d *docstring) rest(field, text string) {
	words := strings.Fields(field)
	switch words[0] {
	case "return", "returns", "yield", "yields":
		d.returns.text = text
	case "rtype":
		d.returns.kind = text
	case "type", "vartype":
		if len(words) > 1 {
			d.add(words[len(words)-1], text, "")
		}
	case "raise", "raises", "except", "exception", "meta":
	default:
		if len(words) > 1 {
			d.add(words[len(words)-1], strings.Join(words[1:len(words)-1], " "), text)
		}
	}
}

// docWords are the words for types in docstrings, and the types that they mean.
var docWords = map[string]string{
	"int": "int", "integer": "int", "ints": "int", "integers": "int", "long": "int",
	"float": "float", "floats": "float", "number": "float", "numbers": "float", "numeric": "float", "double": "float", "real": "float", "scalar": "float",
	"str": "str", "string": "str", "strings": "str", "strs": "str", "text": "str", "unicode": "str", "path": "str", "filename": "str", "url": "str", "path-like": "str", "path_like": "str",
	"bool": "bool", "boolean": "bool", "bools": "bool", "booleans": "bool",
	"list": "list", "lists": "list", "array": "list", "array-like": "list", "array_like": "list", "sequence": "list", "iterable": "list", "tuple": "tuple", "tuples": "tuple", "set": "set", "collection": "list",
	"dict": "dict", "dicts": "dict", "dictionary": "dict", "mapping": "dict", "dictionaries": "dict", "json": "Any",
	"object": "Any", "any": "Any", "none": "None", "null": "None", "bytes": "bytes", "optional": "", "datetime": "datetime.datetime", "date": "datetime.date",
	"\u6574\u6570": "int", "\u6570\u5b57": "float", "\u5b57\u7b26\u4e32": "str", "\u5e03\u5c14": "bool", "\u5217\u8868": "list", "\u5b57\u5178": "dict",
}

// docType is the schema of a type as docstrings write it; {} for what cannot be read.
func (t *typer) docType(text string) *ordered.Object {
	for _, role := range []string{":obj:", ":class:", ":py:class:", ":py:obj:", ":data:", "`"} { // of Sphinx
		text = strings.ReplaceAll(text, role, "")
	}
	text = strings.Trim(text, " .")
	if strings.HasPrefix(text, "{") { // NumPy's choices
		if end := strings.IndexByte(text, '}'); end > 0 {
			if s := choicesIn(text[1:end]); s != nil {
				return s
			}
		}
	}
	var parts []*pyast.Expr
	for _, part := range splitOutside(strings.ReplaceAll(text, " or ", "|"), ",|") {
		word := strings.ToLower(part)
		if word == "" || word == "optional" || strings.HasPrefix(word, "default") || strings.HasPrefix(word, "required") || strings.HasPrefix(word, "keyword") {
			continue
		}
		e := readType(part, 0)
		if e == nil {
			return &ordered.Object{}
		}
		parts = append(parts, e)
	}
	if len(parts) == 0 {
		return &ordered.Object{}
	}
	s, err := t.union(parts)
	if err != nil {
		return &ordered.Object{}
	}
	return s
}

// choicesIn reads 'a', 'b', 1.
func choicesIn(text string) *ordered.Object {
	var values []json.RawMessage
	for _, c := range strings.Split(text, ",") {
		c = strings.TrimSpace(c)
		switch n := len(c); {
		case n >= 2 && (c[0] == '\'' || c[0] == '"') && c[n-1] == c[0]:
			values = append(values, quoted(c[1:n-1]))
		case c == "True" || c == "False":
			values = append(values, json.RawMessage(strings.ToLower(c)))
		case c == "None":
			values = append(values, json.RawMessage("null"))
		case n > 0 && json.Valid([]byte(c)):
			values = append(values, json.RawMessage(c))
		default:
			return nil
		}
	}
	return enumOf(values)
}

// splitOutside cuts at any of the separators that stands in no bracket.
func splitOutside(s, separators string) (parts []string) {
	depth, from := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth <= 0 && strings.IndexByte(separators, c) >= 0:
			parts = append(parts, strings.TrimSpace(s[from:i]))
			from = i + 1
		}
	}
	return append(parts, strings.TrimSpace(s[from:]))
}

// readType reads a type that is written as in Python, or in words: list of int. nil is
// what it cannot read.
func readType(s string, deep int) *pyast.Expr {
	s = strings.TrimSpace(s)
	if s == "" || deep > 8 || len(s) > 400 {
		return nil
	}
	if parts := splitOutside(s, "|"); len(parts) > 1 {
		u := &pyast.Expr{Kind: pyast.KindUnion}
		for _, p := range parts {
			e := readType(p, deep+1)
			if e == nil {
				return nil
			}
			u.Of = append(u.Of, e)
		}
		return u
	}
	if before, after, ok := strings.Cut(s, " of "); ok && !strings.ContainsAny(before, "[(") {
		outer, inner := readType(before, deep+1), readType(strings.Trim(after, "()"), deep+1)
		if outer == nil {
			return nil
		}
		switch {
		case inner == nil:
			return outer
		case outer.Name == "dict":
			return &pyast.Expr{Kind: pyast.KindGeneric, Name: "dict", Of: []*pyast.Expr{{Kind: pyast.KindName, Name: "str"}, inner}}
		case outer.Name == "tuple":
			return &pyast.Expr{Kind: pyast.KindGeneric, Name: "list", Of: []*pyast.Expr{inner}}
		}
		return &pyast.Expr{Kind: pyast.KindGeneric, Name: outer.Name, Of: []*pyast.Expr{inner}}
	}
	if open := strings.IndexByte(s, '['); open > 0 && strings.HasSuffix(s, "]") {
		outer := readType(s[:open], deep+1)
		if outer == nil {
			return nil
		}
		g := &pyast.Expr{Kind: pyast.KindGeneric, Name: outer.Name}
		for _, p := range splitOutside(s[open+1:len(s)-1], ",") {
			e := readType(p, deep+1)
			switch {
			case p == "...":
				e = &pyast.Expr{Kind: "ellipsis"}
			case canonical(outer.Name) == "Literal":
				c := choicesIn(p)
				if c == nil {
					return nil
				}
				list := c.List("enum")
				raw, _ := list[0].(json.RawMessage)
				e = &pyast.Expr{Kind: pyast.KindValue, Value: raw}
			case e == nil:
				return nil
			}
			g.Of = append(g.Of, e)
		}
		return g
	}
	if name, ok := docWords[strings.ToLower(s)]; ok {
		if name == "None" {
			return none
		}
		return &pyast.Expr{Kind: pyast.KindName, Name: name}
	}
	for _, part := range strings.Split(s, ".") {
		if !isName(part) {
			return nil
		}
	}
	return &pyast.Expr{Kind: pyast.KindName, Name: s}
}
