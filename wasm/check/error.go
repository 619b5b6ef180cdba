package check

import (
	"errors"
	"fmt"

	"openskill/wasm/binary"
)

// Code says why a module was refused. The names are those that callers see.
type Code string

// The verdicts against a module.
const (
	InvalidModule    Code = "INVALID_MODULE"
	ModuleTooComplex Code = "MODULE_TOO_COMPLEX"
	ImportDenied     Code = "IMPORT_DENIED"
	FeatureDisabled  Code = "FEATURE_DISABLED"
	MemoryLimit      Code = "MEMORY_LIMIT"
	TableLimit       Code = "TABLE_LIMIT"
)

// Error is a verdict against a module.
type Error struct {
	Code   Code
	Offset int // byte of the module, or 0
	Msg    string
}

// Error gives the message with its place.
func (e *Error) Error() string {
	if e.Offset == 0 {
		return e.Msg
	}
	return fmt.Sprintf("%s (at byte %d)", e.Msg, e.Offset)
}

func refuse(c Code, off int, format string, a ...any) error {
	return &Error{Code: c, Offset: off, Msg: fmt.Sprintf(format, a...)}
}

func invalid(off int, format string, a ...any) error { return refuse(InvalidModule, off, format, a...) }

// verdict turns an error of the decoder into one of ours.
func verdict(err error) error {
	var b *binary.Error
	if !errors.As(err, &b) {
		return err
	}
	switch b.Kind {
	case binary.TooComplex:
		return refuse(ModuleTooComplex, b.Offset, "the module is too complex: %s", b.Msg)
	case binary.Unsupported:
		return disabled(b.Offset, b.Feature, b.Msg)
	default:
		return invalid(b.Offset, "not a valid WebAssembly module: %s", b.Msg)
	}
}

func disabled(off int, f binary.Feature, what string) error {
	return refuse(FeatureDisabled, off, "the WebAssembly feature %s is not enabled (%s); build for WebAssembly 2.0 without it", f, what)
}
