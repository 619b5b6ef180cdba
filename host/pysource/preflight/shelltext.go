package preflight

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"openskill/host/pysource"
)

// What is too long or nested too deeply for the parser, which calls itself for what is nested:
// these bounds keep it below a second and 100 MB, whatever the text.
const (
	maxShell   = 128 << 10 // bytes
	maxOpeners = 15_000    // brackets and words that begin something nested
	maxWithin  = 4         // texts within texts, as in bash -c
)

var openers = []string{"(", "{", "[", "`", "?", "if", "while", "until", "for", "case", "select", "time", "coproc"}

// shellCommand is one command of a text for the shell.
type shellCommand struct {
	name    string // "" where it is computed; with a slash: a file
	line    int
	guarded bool // reached only where the script found the command
}

// shellText is what is in a text for the shell. Names that it computes are not in it.
type shellText struct {
	commands  []shellCommand
	sources   []shellCommand // files that it reads into itself
	functions map[string]bool
	variables []pysource.Variable // that it reads and does not set before
	addresses []pysource.Address
	methods   []string // of curl and wget, beside GET
	connects  bool     // it starts a program that may make requests
	python    []inlineText
}

// inlineText is a program in a shell script, as python3 -c has.
type inlineText struct {
	text string
	line int
}

// readShell reads a text for the shell and runs nothing of it. The error says why it cannot be
// read; line is that of the text's first line.
func readShell(text string, line int) (*shellText, error) {
	r := newShellReader(line)
	if err := r.read(text); err != nil {
		return nil, err
	}
	for _, v := range r.seen {
		if at, ok := r.set[v.name]; !ok || v.offset < at && !v.inner || v.own {
			r.variables = append(r.variables, pysource.Variable{Name: v.name, Line: v.line})
		}
	}
	return &r.shellText, nil
}

func newShellReader(line int) *shellReader {
	return &shellReader{
		shellText: shellText{functions: map[string]bool{}}, first: line - 1,
		set: map[string]uint{}, values: map[string]string{}, guards: map[string]int{},
	}
}

type shellReader struct {
	shellText
	first  int // lines before this text
	within int
	set    map[string]uint   // variables and where they are set first
	values map[string]string // of variables, where they are plain
	seen   []shellVariable
	guards map[string]int // commands that were found, where the walk is
	bodies int            // functions around the walk
	shown  int            // commands that print, around the walk
	own    string         // the variable that is being set
}

type shellVariable struct {
	name       string
	line       int
	offset     uint
	inner, own bool
}

// limitError is the error of a text that is too much to be read.
type limitError string

func (e limitError) Error() string { return string(e) }

func (r *shellReader) read(text string) error {
	if len(text) > maxShell {
		return limitError(fmt.Sprintf("it has %d bytes; texts for the shell up to %d are checked", len(text), maxShell))
	}
	n := 0
	for _, o := range openers {
		n += strings.Count(text, o)
	}
	if n > maxOpeners {
		return limitError("it has too many brackets and loops to check")
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return err
	}
	// Functions and variables first: a function may use what is set below it.
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				r.functions[n.Name.Value] = true
			}
		case *syntax.Assign:
			if n.Name != nil && (!n.Naked || n.Array != nil) {
				r.sets(n.Name.Value, n.Pos())
			}
		case *syntax.WordIter:
			r.sets(n.Name.Value, n.Pos())
		case *syntax.CallExpr:
			if name := lit(n.Args); name == "read" || name == "mapfile" || name == "readarray" || name == "getopts" {
				for _, a := range n.Args[1:] {
					r.sets(a.Lit(), n.Pos())
				}
			}
		}
		return true
	})
	r.walk(f)
	return nil
}

func lit(args []*syntax.Word) string {
	if len(args) == 0 {
		return ""
	}
	return args[0].Lit()
}

func (r *shellReader) sets(name string, at syntax.Pos) {
	if old, ok := r.set[name]; name != "" && (!ok || at.Offset() < old) {
		r.set[name] = at.Offset()
	}
}

func (r *shellReader) line(p syntax.Pos) int { return r.first + int(p.Line()) }

func (r *shellReader) walk(node syntax.Node) { syntax.Walk(node, r.visit) }

func (r *shellReader) visit(node syntax.Node) bool {
	switch n := node.(type) {
	case *syntax.IfClause:
		found := looked(n.Cond)
		for _, s := range n.Cond {
			r.walk(s)
		}
		r.guard(found, 1)
		for _, s := range n.Then {
			r.walk(s)
		}
		r.guard(found, -1)
		if n.Else != nil {
			r.walk(n.Else)
		}
		return false
	case *syntax.BinaryCmd:
		r.walk(n.X)
		var found []string
		if n.Op == syntax.AndStmt {
			found = looked([]*syntax.Stmt{n.X})
		}
		r.guard(found, 1)
		r.walk(n.Y)
		r.guard(found, -1)
		return false
	case *syntax.FuncDecl:
		r.bodies++
		r.walk(n.Body)
		r.bodies--
		return false
	case *syntax.Assign:
		return r.assign(n)
	case *syntax.ParamExp:
		r.parameter(n)
	case *syntax.Word:
		if r.shown == 0 {
			if text := r.text(n, 0); strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
				r.addresses = append(r.addresses, pysource.Address{Text: text, Line: r.line(n.Pos())})
			}
		}
	case *syntax.Stmt:
		if call, ok := n.Cmd.(*syntax.CallExpr); ok {
			r.input(call, n.Redirs)
		}
	case *syntax.CallExpr:
		r.call(r.words(n.Args), r.line(n.Pos()))
		if name := lit(n.Args); name == "echo" || name == "printf" {
			r.shown++
			for _, a := range n.Args {
				r.walk(a)
			}
			r.shown--
			return false
		}
	}
	return true
}

// looked are the commands that a condition looks for, as command -v does.
func looked(cond []*syntax.Stmt) (names []string) {
	for _, s := range cond {
		if s.Negated {
			continue
		}
		switch c := s.Cmd.(type) {
		case *syntax.BinaryCmd:
			if c.Op == syntax.AndStmt {
				names = append(names, looked([]*syntax.Stmt{c.X, c.Y})...)
			}
		case *syntax.CallExpr:
			var words []string
			for _, a := range c.Args {
				words = append(words, a.Lit())
			}
			if len(words) > 1 && (words[0] == "which" || words[0] == "type" || words[0] == "hash" || words[0] == "command" && words[1] == "-v") {
				names = append(names, words[len(words)-1])
			}
		}
	}
	return names
}

func (r *shellReader) guard(names []string, by int) {
	for _, n := range names {
		r.guards[n] += by
	}
}

func (r *shellReader) assign(n *syntax.Assign) bool {
	if n.Name == nil || n.Value == nil {
		return true
	}
	before := r.own
	r.own = n.Name.Value
	r.walk(n.Value)
	r.own = before
	if text := r.text(n.Value, 0); text != "" && (r.values[n.Name.Value] == "" || strings.Contains(r.values[n.Name.Value], pysource.Unknown)) {
		r.values[n.Name.Value] = text
	}
	return false
}

func (r *shellReader) parameter(n *syntax.ParamExp) {
	if n.Param == nil || n.Excl || len(r.seen) >= 10_000 {
		return
	}
	name := n.Param.Value
	if name == strings.ToUpper(name) && name != "" && (name[0] >= 'A' && name[0] <= 'Z' || name[0] == '_') && !shellVariables[name] && !strings.HasPrefix(name, "BASH") {
		r.seen = append(r.seen, shellVariable{name: name, line: r.line(n.Pos()), offset: n.Pos().Offset(), inner: r.bodies > 0, own: r.own == name})
	}
}

// shellVariables are set by the shell itself.
var shellVariables = map[string]bool{
	"_": true, "RANDOM": true, "SRANDOM": true, "SECONDS": true, "LINENO": true, "FUNCNAME": true, "PIPESTATUS": true, "OPTARG": true, "OPTIND": true, "OPTERR": true,
	"REPLY": true, "PPID": true, "IFS": true, "PS1": true, "PS2": true, "PS3": true, "PS4": true, "OSTYPE": true, "MACHTYPE": true, "HOSTTYPE": true, "SHLVL": true,
	"EPOCHSECONDS": true, "EPOCHREALTIME": true, "MAPFILE": true, "COPROC": true, "GROUPS": true, "DIRSTACK": true, "SHELLOPTS": true,
}

// words are the texts of arguments. The first one is split, as the shell splits $CMD.
func (r *shellReader) words(args []*syntax.Word) (all []string) {
	for i, a := range args {
		text := r.text(a, 0)
		if _, plain := first(a.Parts).(*syntax.ParamExp); i == 0 && plain && len(a.Parts) == 1 {
			all = append(all, strings.Fields(text)...)
			continue
		}
		all = append(all, text)
	}
	return all
}

func first(parts []syntax.WordPart) syntax.WordPart {
	if len(parts) == 0 {
		return nil
	}
	return parts[0]
}

// text is what a word stands for, with pysource.Unknown for what is computed.
func (r *shellReader) text(w *syntax.Word, deep int) string {
	if w == nil {
		return ""
	}
	return r.parts(w.Parts, deep, false)
}

func (r *shellReader) parts(parts []syntax.WordPart, deep int, quoted bool) string {
	var b strings.Builder
	for _, p := range parts {
		if b.Len() > 4000 || deep > 8 {
			return b.String() + pysource.Unknown
		}
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value, quoted))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(r.parts(p.Parts, deep+1, true))
		case *syntax.ParamExp:
			b.WriteString(r.valueOf(p, deep))
		case *syntax.CmdSubst:
			b.WriteString(r.found(p))
		default:
			b.WriteString(pysource.Unknown)
		}
	}
	return b.String()
}

// unescaped takes out the backslashes that quote.
func unescaped(text string, quoted bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0) {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func (r *shellReader) valueOf(p *syntax.ParamExp, deep int) string {
	if p.Param == nil || p.Excl || p.Length || p.Index != nil || p.Slice != nil || p.Repl != nil {
		return pysource.Unknown
	}
	if v := r.values[p.Param.Value]; v != "" && (p.Exp == nil || p.Exp.Op == syntax.DefaultUnset || p.Exp.Op == syntax.DefaultUnsetOrNull) {
		return v
	}
	if p.Exp != nil && slices.Contains([]syntax.ParExpOperator{syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull}, p.Exp.Op) {
		if text := r.text(p.Exp.Word, deep+1); text != "" {
			return text
		}
	}
	return pysource.Unknown
}

// found is the command that $(command -v NAME) gives.
func (r *shellReader) found(p *syntax.CmdSubst) string {
	for _, s := range p.Stmts {
		if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.OrStmt {
			s = b.X
		}
		if names := looked([]*syntax.Stmt{s}); len(names) == 1 && names[0] != "" {
			return names[0]
		}
	}
	return pysource.Unknown
}

// input notes a program in Python that python3 reads from its input.
func (r *shellReader) input(call *syntax.CallExpr, redirects []*syntax.Redirect) {
	words := r.words(call.Args)
	if len(words) == 0 || len(words) > 1 && words[1] != "-" || !strings.HasPrefix(path.Base(words[0]), "python") {
		return
	}
	for _, d := range redirects {
		if d.Hdoc != nil {
			r.inline(r.text(d.Hdoc, 0), r.line(d.Hdoc.Pos()))
		}
	}
}

func (r *shellReader) inline(text string, line int) {
	if len(r.python) < 100 {
		r.python = append(r.python, inlineText{text, line})
	}
}
