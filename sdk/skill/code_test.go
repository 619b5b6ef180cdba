package skill

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// Every constant of code.go has a status: one without would be answered with 500, as
// a code that nobody published.
func TestEveryCodeHasAStatus(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		for i, value := range spec.Values {
			literal, ok := value.(*ast.BasicLit)
			if !ok {
				t.Errorf("%s is no text that can be read here", spec.Names[i].Name)
				continue
			}
			code, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found++
			if !Code(code).Known() {
				t.Errorf("%s has no status: it wants a row in statuses of code.go, and one in docs/callers.md", spec.Names[i].Name)
			}
		}
		return true
	})
	if found != len(statuses) {
		t.Errorf("code.go declares %d codes, and statuses has %d", found, len(statuses))
	}
}
