package lower

import (
	"fmt"

	"openskill/wasm/binary"
	"openskill/wasm/check"
)

func unsupported(format string, a ...any) error {
	return &check.Error{
		Code: check.FeatureDisabled,
		Msg:  fmt.Sprintf("the WebAssembly feature %s is not available in this form: %s", binary.FeatureExceptions, fmt.Sprintf(format, a...)),
	}
}

func tooComplex(format string, a ...any) error {
	return &check.Error{Code: check.ModuleTooComplex, Msg: "the module is too complex: " + fmt.Sprintf(format, a...)}
}
