package manifest

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// MaxInstructions bounds what a pattern compiles to, and what all patterns of a schema do
// together: 14 KB of (?:a?){999} are three million, some hundred bytes of memory each.
const MaxInstructions = 10_000

var errLargePattern = fmt.Errorf("the pattern exceeds %d instructions; repeat less", MaxInstructions)

// pattern compiles a regular expression. It is the validator's engine, for the format regex
// of values as well.
func pattern(s string) (jsonschema.Regexp, error) {
	if instructions(s) > MaxInstructions {
		return nil, errLargePattern
	}
	return regexp.Compile(s)
}

// instructions is about how many a pattern compiles to, counted before it is; 0 if it is none.
func instructions(s string) int {
	if len(s) > MaxInstructions {
		return len(s) // whatever it is, it is refused
	}
	re, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return 0
	}
	return int(min(size(re), 1<<30))
}

func size(re *syntax.Regexp) int64 {
	n := int64(1)
	switch re.Op { //nolint:exhaustive // the others are one instruction
	case syntax.OpLiteral:
		n = int64(len(re.Rune))
	case syntax.OpCharClass:
		n += int64(len(re.Rune)) / 8 // ranges are looked through, and kept
	}
	for _, sub := range re.Sub {
		n += size(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= int64(max(re.Max, re.Min+1, 1))
	}
	return n + 1
}
