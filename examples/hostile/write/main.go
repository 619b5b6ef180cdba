// Command write writes the hostile cases into a folder, each as a skill's folder, or as
// the archive that is uploaded, to try them by hand.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"openskill/examples/hostile"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string) error {
	for _, c := range hostile.All() {
		u := c.Upload()
		to := filepath.Join(dir, string(c.ID()))
		err := os.MkdirAll(to, 0o750)
		if u.Archive != nil {
			err = errors.Join(err, os.WriteFile(filepath.Join(to, "upload.archive"), u.Archive, 0o600))
		} else {
			err = errors.Join(err,
				os.WriteFile(filepath.Join(to, "skill.yaml"), u.Manifest, 0o600),
				os.WriteFile(filepath.Join(to, "main.wasm"), u.Module, 0o600))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
