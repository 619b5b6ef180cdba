package binary

import "fmt"

// Kind says why bytes were refused.
type Kind int

// The kinds of refusal.
const (
	Malformed   Kind = iota // not a module by section 5 of the specification
	TooComplex              // over one of the Limits
	Unsupported             // uses a proposal that this package does not decode
)

// Feature names a WebAssembly proposal.
type Feature string

// The proposals that messages name.
const (
	FeatureExceptions   Feature = "exception-handling"
	FeatureTailCall     Feature = "tail-call"
	FeatureThreads      Feature = "threads"
	FeatureMemory64     Feature = "memory64"
	FeatureMultiMemory  Feature = "multi-memory"
	FeatureGC           Feature = "garbage-collection"
	FeatureTypedRefs    Feature = "function-references"
	FeatureRelaxedSIMD  Feature = "relaxed-simd"
	FeaturePageSizes    Feature = "custom-page-sizes"
	FeatureWideMath     Feature = "wide-arithmetic"
	FeatureComponents   Feature = "component-model"
	FeatureStackSwitch  Feature = "stack-switching"
	FeatureLegacyExcept Feature = "legacy-exception-handling"
)

// Error is the one error of this package.
type Error struct {
	Kind    Kind
	Feature Feature // for Unsupported
	Offset  int     // byte of the module at which it was noticed
	Msg     string  // without text taken from the module
}

// Error says what is wrong, and where.
func (e *Error) Error() string {
	if e.Kind == Unsupported {
		return fmt.Sprintf("at byte %d: uses %s: %s", e.Offset, e.Feature, e.Msg)
	}
	return fmt.Sprintf("at byte %d: %s", e.Offset, e.Msg)
}

func malformed(off int, format string, a ...any) error {
	return &Error{Kind: Malformed, Offset: off, Msg: fmt.Sprintf(format, a...)}
}

func tooMany(off int, what string, n, limit uint64) error {
	return &Error{Kind: TooComplex, Offset: off, Msg: fmt.Sprintf("%s: %d, at most %d are accepted", what, n, limit)}
}

func unsupported(off int, f Feature, msg string) error {
	return &Error{Kind: Unsupported, Feature: f, Offset: off, Msg: msg}
}
