package binary

import "testing"

// TestKeys holds the keys of all types of at most two values against Equal.
func TestKeys(t *testing.T) {
	all := []ValType{I32, I64, F32, F64, V128, FuncRef, ExternRef, ExnRef}
	lists := [][]ValType{nil}
	for _, a := range all {
		lists = append(lists, []ValType{a})
		for _, b := range all {
			lists = append(lists, []ValType{a, b})
		}
	}
	seen := map[string]FuncType{}
	for _, p := range lists {
		for _, r := range lists {
			f := FuncType{Params: p, Results: r}
			if other, ok := seen[f.Key()]; ok && !other.Equal(f) {
				t.Fatalf("%v and %v have one key", f, other)
			}
			seen[f.Key()] = f
		}
	}
}
