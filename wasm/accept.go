package wasm

import (
	"slices"

	"openskill/wasm/amend"
	wbin "openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/lower"
)

// accept checks a module, takes the exceptions out of one that has any, and has
// references to functions taken from a table. The report is that of the module as it came.
func (e *Engine) accept(module []byte, digest string, o *CompileOptions) (*check.Result, error) {
	res, err := e.lowered(module, digest, o)
	if err == nil && !amend.Callable(res.Module, arch()) {
		err = &check.Error{Code: check.ModuleTooComplex, Msg: "a type of a function has more than 256 bytes of parameters and results beside those in registers, which is not compiled for this processor; pass them in memory"}
		res.Report.Refuse(err)
	}
	if err == nil {
		res.Module, err = amend.References(res.Module)
	}
	return res, err
}

// lowered is accept without the last step: wazero never sees exceptions.
func (e *Engine) lowered(module []byte, digest string, o *CompileOptions) (*check.Result, error) {
	opts := e.checkOptions(o)
	opts.Digest = digest
	res, err := check.Module(module, opts)
	if err != nil || !slices.Contains(res.Report.Features, string(wbin.FeatureExceptions)) {
		return res, err
	}
	low, err := lower.Exceptions(res.Module, res.MaxStack, nil)
	if err == nil {
		err = check.Affordable(low.Module, opts)
	}
	if err != nil {
		res.Report.Refuse(err)
		return res, err
	}
	res.Module, res.MaxStack = low.Module, low.MaxStack
	return res, nil
}
