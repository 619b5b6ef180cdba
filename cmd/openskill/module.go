package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"openskill/sdk/skill"
)

func (a *cli) moduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "module",
		Short:   "Run and check WebAssembly modules without a skill",
		Example: "  openskill module check program.wasm\n  openskill module run program.wasm -- an argument",
	}
	group(cmd)
	cmd.AddCommand(a.moduleRunCommand(), a.moduleCheckCommand())
	return cmd
}

// maxModule is the largest module that the checker accepts, in bytes.
const maxModule = 64 << 20

// readModule reads a module. One that is too large is cut one byte after the cap,
// with its true size: nothing reads gigabytes to refuse them.
func readModule(name string) (b []byte, size int64, err error) {
	f, info, err := openRegular(name)
	if err != nil {
		return nil, 0, usage("cannot read the module %s: %v", quote(name), plain(err))
	}
	defer f.Close()
	size = info.Size()
	if size > maxModule {
		return nil, size, nil
	}
	b = make([]byte, size)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) { // it may have shrunk
		return nil, 0, hostFailed(plain(err))
	}
	return b[:n], int64(n), nil
}

// moduleName is the first argument that a guest sees.
func moduleName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' || path[i] == '\\' {
			return path[i+1:]
		}
	}
	return path
}

const tooLarge = "the module is too large: %d bytes, the limit is %d"

func refusedSize(size int64) error {
	return failed(skill.ModuleTooComplex, tooLarge, size, maxModule)
}
