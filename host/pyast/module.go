package pyast

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Module is what a program is made of. Names are resolved by its imports: after
// "import typing as t", what is written t.Optional is typing.Optional here. At most 5,000
// entries of each list are told.
type Module struct {
	Problem   *Problem   `json:"error"` // nil: it is Python, and the rest holds
	Docstring string     `json:"docstring"`
	Functions []Function `json:"functions"` // all, in order of the text; see Function.Path
	Classes   []Class    `json:"classes"`
	Aliases   []Alias    `json:"aliases"` // what is assigned at the top of the module, in up to 16 KiB
	Imports   []Import   `json:"imports"`
	Uses      []Use      `json:"uses"`    // of what is imported, and of some built-in functions
	Parsers   []Parser   `json:"parsers"` // of module argparse
	Main      bool       `json:"main"`    // it has an if __name__ == "__main__"
	Cut       bool       `json:"cut"`     // a list was longer than is told
	// UnknownParser says that arguments are added to a parser that was not found, as by a
	// function that is given one: Parsers is not all.
	UnknownParser bool `json:"unknown_parser"`
}

// Problem is why a program cannot be read.
type Problem struct {
	Kind    string `json:"kind"` // syntax, encoding or complex
	Line    int    `json:"line"` // from 1; 0: the whole
	Column  int    `json:"column"`
	Message string `json:"message"` // the parser's own, not cleaned
}

// Function is one function or method.
type Function struct {
	Name       string      `json:"name"`
	Path       string      `json:"path"` // of names: f, Class.f, outer.<locals>.f
	Line       int         `json:"line"`
	EndLine    int         `json:"end_line"`
	Async      bool        `json:"async"`
	Generator  bool        `json:"generator"`
	Decorators []*Expr     `json:"decorators"`
	Docstring  string      `json:"docstring"` // its indentation taken away
	Parameters []Parameter `json:"parameters"`
	Returns    *Expr       `json:"returns"` // nil: not said
	TypeParams []TypeParam `json:"type_params"`
}

// The kinds of parameters, as module inspect has them.
const (
	PositionalOnly      = "positional_only"
	PositionalOrKeyword = "positional_or_keyword"
	VarPositional       = "var_positional" // *args
	KeywordOnly         = "keyword_only"
	VarKeyword          = "var_keyword" // **kwargs
)

// Parameter is one parameter of a function.
type Parameter struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Line       int    `json:"line"`
	Annotation *Expr  `json:"annotation"` // nil: none
	Default    *Expr  `json:"default"`    // nil: none
}

// TypeParam is T in def f[T: bound].
type TypeParam struct {
	Name  string `json:"name"`
	Bound *Expr  `json:"bound"`
}

// Class is one class. What kind it is of (a dataclass, an Enum) follows from its
// decorators and bases.
type Class struct {
	Name       string      `json:"name"`
	Path       string      `json:"path"`
	Line       int         `json:"line"`
	Docstring  string      `json:"docstring"`
	Bases      []*Expr     `json:"bases"`
	Keywords   []Keyword   `json:"keywords"` // class A(B, total=False)
	Decorators []*Expr     `json:"decorators"`
	Fields     []Field     `json:"fields"` // what is assigned or annotated in its body
	Methods    []string    `json:"methods"`
	TypeParams []TypeParam `json:"type_params"`
}

// Field is one name in the body of a class.
type Field struct {
	Name       string `json:"name"`
	Line       int    `json:"line"`
	Annotation *Expr  `json:"annotation"`
	Default    *Expr  `json:"default"`
	Docstring  string `json:"docstring"` // a text right below it
}

// Alias is an assignment at the top of the module, or a statement type X = ….
type Alias struct {
	Name       string      `json:"name"`
	Line       int         `json:"line"`
	Type       bool        `json:"type"` // it is said to be a type
	Value      *Expr       `json:"value"`
	TypeParams []TypeParam `json:"type_params"`
}

// Import is one import statement's module.
type Import struct {
	Module       string       `json:"module"` // a.b.c; "" in from . import x
	As           string       `json:"as"`
	Names        []ImportName `json:"names"` // from Module import these; nil for import Module
	Level        int          `json:"level"` // dots before it
	Line         int          `json:"line"`
	Optional     bool         `json:"optional"`      // it may fail: within try … except ImportError
	Function     bool         `json:"function"`      // within a function: it may never be reached
	TypeChecking bool         `json:"type_checking"` // for type checkers alone
}

// ImportName is a name that from … import takes; * for all.
type ImportName struct {
	Name string `json:"name"`
	As   string `json:"as"`
}

// Use is a use of something imported, as sys.stdin or subprocess.run(…), or a call of
// open, input, exec, eval, compile, breakpoint, exit, quit or __import__.
type Use struct {
	Name     string    `json:"name"` // resolved: subprocess.run, sys.stdin.read, open
	Line     int       `json:"line"`
	Call     bool      `json:"call"`
	Function string    `json:"function"` // path of the function that it stands in; ""
	Args     []*Expr   `json:"args"`     // of a call: the first four
	Keywords []Keyword `json:"keywords"` // and the first eight
}

// Keyword is name=value; the name ** stands for a mapping that is spread.
type Keyword struct {
	Name  string `json:"name"`
	Value *Expr  `json:"value"`
}

// Parser is an argparse.ArgumentParser, or the parser of a subcommand.
type Parser struct {
	Line       int          `json:"line"`
	Parent     int          `json:"parent"`   // index of the parser whose subcommand it is; -1
	Command    string       `json:"command"`  // its name there
	Keywords   []Keyword    `json:"keywords"` // it was made with
	Parents    []int        `json:"parents"`  // indexes of parsers whose arguments it has too
	Arguments  []Argument   `json:"arguments"`
	Subparsers []ParserCall `json:"subparsers"` // calls of add_subparsers
	Defaults   []Keyword    `json:"defaults"`   // of set_defaults
	Dynamic    bool         `json:"dynamic"`    // not all of it could be followed
}

// ParserCall is a call of a method of a parser.
type ParserCall struct {
	Line int  `json:"line"`
	Call Call `json:"call"`
}

// Argument is a call of add_argument.
type Argument struct {
	Line  int    `json:"line"`
	Group *Group `json:"group"` // nil: in none that excludes others
	Call  Call   `json:"call"`
}

// Group is a group of arguments of which one may be given.
type Group struct {
	Exclusive int  `json:"exclusive"` // a number that its arguments share
	Required  bool `json:"required"`
}

// Call is what a call is given.
type Call struct {
	Args     []*Expr   `json:"args"`
	Keywords []Keyword `json:"keywords"`
}

// Keyword gives a keyword argument, nil where it is not given.
func (c *Call) Keyword(name string) *Expr { return keyword(c.Keywords, name) }

// Keyword gives what a parser was made with.
func (p *Parser) Keyword(name string) *Expr { return keyword(p.Keywords, name) }

// Keyword gives an argument of a call expression.
func (e *Expr) Keyword(name string) *Expr { return keyword(e.Keywords, name) }

func keyword(list []Keyword, name string) *Expr {
	for _, k := range list {
		if k.Name == name {
			return k.Value
		}
	}
	return nil
}

// The kinds of expressions.
const (
	KindValue   = "value"   // Value, a JSON value: a text, number, truth value or null
	KindName    = "name"    // Name, resolved: typing.Any
	KindGeneric = "generic" // Name[Of, …]
	KindUnion   = "union"   // Of | …
	KindList    = "list"    // Value where all of it is literal, else Of
	KindTuple   = "tuple"   // the same
	KindSet     = "set"     // the same
	KindDict    = "dict"    // Value where all of it is literal with texts as keys, else Keys and Of
	KindCall    = "call"    // Name(Of, …, Keywords)
	// Anything else has Source, and one of the kinds source, bytes, complex, ellipsis,
	// or the type of a literal that JSON cannot hold.
	KindSource = "source"
)

// Expr is an expression: a type, a default or an argument.
type Expr struct {
	Kind     string          `json:"kind"`
	Value    json.RawMessage `json:"value,omitempty"` // nil: it is not a literal
	Name     string          `json:"name,omitempty"`
	Of       []*Expr         `json:"of,omitempty"`
	Keys     []*Expr         `json:"keys,omitempty"`
	Keywords []Keyword       `json:"keywords,omitempty"`
	Source   string          `json:"source,omitempty"` // at most 400 characters
}

// Text gives the text that e is a literal of.
func (e *Expr) Text() (string, bool) {
	if e == nil || len(e.Value) == 0 || e.Value[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(e.Value, &s)
	return s, err == nil
}

// Bool reports whether e is the literal True or False, and which.
func (e *Expr) Bool() (value, ok bool) {
	if e == nil {
		return false, false
	}
	return bytes.Equal(e.Value, []byte("true")), bytes.Equal(e.Value, []byte("true")) || bytes.Equal(e.Value, []byte("false"))
}

// IsNone reports whether e is the literal None.
func (e *Expr) IsNone() bool { return e != nil && bytes.Equal(e.Value, []byte("null")) }

// List gives the elements of a literal list, tuple or set.
func (e *Expr) List() ([]json.RawMessage, bool) {
	if e == nil || len(e.Value) == 0 || e.Value[0] != '[' {
		return nil, false
	}
	var list []json.RawMessage
	err := json.Unmarshal(e.Value, &list)
	return list, err == nil
}

// Last is the part of Name behind the last dot.
func (e *Expr) Last() string { return e.Name[strings.LastIndexByte(e.Name, '.')+1:] }

// Function finds the last function of a name at the top of the module, which is the one
// that the name means; nil where there is none.
func (m *Module) Function(name string) *Function {
	var found *Function
	for i := range m.Functions {
		if f := &m.Functions[i]; f.Path == name && f.Name == name {
			found = f
		}
	}
	return found
}

// Class finds the last class of a name at the top of the module; nil where there is none.
func (m *Module) Class(name string) *Class {
	var found *Class
	for i := range m.Classes {
		if c := &m.Classes[i]; c.Path == name {
			found = c
		}
	}
	return found
}

// Alias finds the last assignment to a name at the top of the module; nil where there is
// none.
func (m *Module) Alias(name string) *Alias {
	var found *Alias
	for i := range m.Aliases {
		if a := &m.Aliases[i]; a.Name == name {
			found = a
		}
	}
	return found
}
