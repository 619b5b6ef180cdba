package pyast

import (
	"encoding/json"
	"fmt"
)

// Decode reads the answer of the program that reads programs. It may be forged: a
// program that breaks the parser can say what it likes. What comes out holds together
// whatever it says: no expression within another is nil, none is nested deeper than 64,
// parsers refer to parsers that are there, and literals are of their kinds.
func Decode(answer []byte) (*Module, error) {
	m := &Module{}
	if err := json.Unmarshal(answer, m); err != nil {
		return nil, err
	}
	for i := range m.Functions {
		f := &m.Functions[i]
		sound(f.Returns, 0)
		list(&f.Decorators)
		params(f.TypeParams)
		for j := range f.Parameters {
			sound(f.Parameters[j].Annotation, 0)
			sound(f.Parameters[j].Default, 0)
		}
	}
	for i := range m.Classes {
		c := &m.Classes[i]
		list(&c.Bases)
		list(&c.Decorators)
		keywords(c.Keywords, 0)
		params(c.TypeParams)
		for j := range c.Fields {
			sound(c.Fields[j].Annotation, 0)
			sound(c.Fields[j].Default, 0)
		}
	}
	for i := range m.Aliases {
		sound(m.Aliases[i].Value, 0)
		params(m.Aliases[i].TypeParams)
	}
	for i := range m.Uses {
		list(&m.Uses[i].Args)
		keywords(m.Uses[i].Keywords, 0)
	}
	return m, m.parsers()
}

func (m *Module) parsers() error {
	for i := range m.Parsers {
		p := &m.Parsers[i]
		if p.Parent < -1 || p.Parent >= i {
			return fmt.Errorf("parser %d has the parent %d", i, p.Parent)
		}
		for _, n := range p.Parents {
			if n < 0 || n >= len(m.Parsers) {
				return fmt.Errorf("parser %d has the parser %d", i, n)
			}
		}
		keywords(p.Keywords, 0)
		keywords(p.Defaults, 0)
		for j := range p.Arguments {
			list(&p.Arguments[j].Call.Args)
			keywords(p.Arguments[j].Call.Keywords, 0)
		}
		for j := range p.Subparsers {
			list(&p.Subparsers[j].Call.Args)
			keywords(p.Subparsers[j].Call.Keywords, 0)
		}
	}
	return nil
}

func params(list []TypeParam) {
	for i := range list {
		sound(list[i].Bound, 0)
	}
}

// deepest is how deep expressions may be nested.
const deepest = 64

func list(l *[]*Expr) { *l = within(*l, 0) }

func within(l []*Expr, depth int) []*Expr {
	if depth > deepest {
		return nil
	}
	for i := range l {
		if l[i] == nil {
			l[i] = &Expr{Kind: KindSource}
		}
		sound(l[i], depth)
	}
	return l
}

func keywords(l []Keyword, depth int) {
	for i := range l {
		if l[i].Value == nil {
			l[i].Value = &Expr{Kind: KindSource}
		}
		sound(l[i].Value, depth)
	}
}

// sound mends an expression. nil is none.
func sound(e *Expr, depth int) {
	if e == nil {
		return
	}
	if depth > deepest {
		*e = Expr{Kind: KindSource}
		return
	}
	e.Of = within(e.Of, depth+1)
	e.Keys = within(e.Keys, depth+1)
	keywords(e.Keywords, depth+1)
	if len(e.Value) > 0 && !e.holds() {
		e.Value = nil
	}
}

// holds reports whether the value is of the expression's kind.
func (e *Expr) holds() bool {
	switch first := e.Value[0]; e.Kind {
	case KindValue:
		return first != '[' && first != '{'
	case KindList, KindTuple, KindSet:
		return first == '['
	case KindDict:
		return first == '{'
	}
	return false
}
