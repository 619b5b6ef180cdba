package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"openskill/wasm"
	"openskill/wasm/check"
)

func (a *cli) moduleCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE.wasm",
		Short: "Check whether a module would be admitted",
		Long: `Print the admission report of a module as JSON: digest, features, imports, counts
against caps, and the verdict. The module is neither compiled nor run. The exit code is
0 if it is accepted and 1 if it is refused.`,
		Example: "  openskill module check program.wasm",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			b, size, err := readModule(args[0])
			if err != nil {
				return err
			}
			report := check.Report{
				Size: int(size), Error: &check.Verdict{Code: check.ModuleTooComplex, Message: fmt.Sprintf(tooLarge, size, maxModule)},
				Features: []string{}, Imports: []check.Imported{}, Exports: []string{},
				Counts: []check.Count{{Property: "bytes", Value: uint64(size), Cap: maxModule}}, // never negative
			}
			if b != nil {
				report, _ = wasm.Check(b, nil) // the verdict is in the report
			}
			if err := a.printJSON(report); err != nil {
				return err
			}
			if !report.Accepted {
				return exit(exitFailed)
			}
			return nil
		},
	}
}
