//go:build !linux

package wasm

import "github.com/tetratelabs/wazero"

func (*Engine) share(string, wazero.CompiledModule) {}
