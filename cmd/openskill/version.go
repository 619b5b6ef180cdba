package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/internal/cliflag"
	"openskill/wasm"
)

// versionInfo says what this binary was built from.
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // "" where the build did not record it
	Dirty   bool   `json:"dirty"`  // built with changes that are in no commit
	Go      string `json:"go"`
	Wazero  string `json:"wazero"`
	// Edits are those of wazero's compiler; none where it was built without make.
	Edits []string `json:"edits"`
	OS    string   `json:"os"`
	Arch  string   `json:"arch"`
}

func version() versionInfo {
	v := versionInfo{Version: app.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Edits: append([]string{}, wasm.CompilerEdits()...)}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Dirty = s.Value == "true"
		}
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/tetratelabs/wazero" {
			v.Wazero = d.Version
		}
	}
	return v
}

func (a *cli) versionCommand() *cobra.Command {
	var asJSON, sbom bool
	var of string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and what the binary was built from",
		Long: `Print the version and what the binary was built from. With --sbom, print a bill of
materials (CycloneDX 1.6): the modules recorded in the binary, with versions and the
sums of go.sum. Licences are not recorded.`,
		Example: "  openskill version --json\n  openskill version --sbom > openskill.cdx.json",
		Args:    takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if sbom {
				info, err := builtFrom(of)
				if err != nil {
					return err
				}
				if err := writeSBOM(a.stdout, info); err != nil {
					return hostFailed(err)
				}
				return nil
			}
			if of != "" {
				return usage("--of needs --sbom")
			}
			v := version()
			if asJSON {
				return a.printJSON(v)
			}
			commit := v.Commit
			if commit == "" {
				commit = "unknown"
			} else if v.Dirty {
				commit += " with changes"
			}
			return a.print("openskill %s (commit %s, %s, wazero %s with %d edits, %s/%s)\n", v.Version, commit, v.Go, v.Wazero, len(v.Edits), v.OS, v.Arch)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&sbom, "sbom", false, "print a bill of materials as JSON")
	cmd.Flags().Var(cliflag.Text(&of, "FILE"), "of", "other openskill binary to inspect, also for another machine")
	cmd.MarkFlagsMutuallyExclusive("json", "sbom")
	return cmd
}
