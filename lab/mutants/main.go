package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(context.Background(), "..", os.Args[1:], os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, only []string, out io.Writer) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	all, err := mutants(root)
	if err != nil {
		return err
	}
	caught, survived := 0, 0
	for _, m := range all {
		if len(only) > 0 && !slices.Contains(only, m.threat) {
			continue
		}
		why, err := m.tried(ctx, root)
		if err != nil {
			return err
		}
		if why == "" {
			caught++
			_, _ = fmt.Fprintf(out, "%s caught by %s %s (%s)\n", m.threat, m.pkg, m.test, m.place)
			continue
		}
		survived++
		_, _ = fmt.Fprintf(out, "%s SURVIVED %s %s (%s): %s\n", m.threat, m.pkg, m.test, m.place, why)
	}
	_, _ = fmt.Fprintf(out, "%d passed, %d failed\n", caught, survived)
	if survived > 0 {
		return fmt.Errorf("%d mutants survived", survived)
	}
	return nil
}

// tried runs the test with and without the defence. why is "" if only the defence makes it
// pass.
func (m *mutant) tried(ctx context.Context, root string) (why string, err error) {
	changed, err := m.apply(root)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "openskill-mutant-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	laid, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, filepath.FromSlash(m.file)): file}})
	if err != nil {
		return "", err
	}
	for name, b := range map[string][]byte{file: changed, overlay: laid} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return "", err
		}
	}
	if out, ok := m.goTest(ctx, root, ""); !ok || strings.Contains(out, "no tests to run") {
		return "with the defence the test does not pass: " + tail(out), nil
	}
	switch out, ok := m.goTest(ctx, root, overlay); {
	case ok:
		return "the test passes without the defence", nil
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return "the mutant does not compile: " + tail(out), nil
	}
	return "", nil
}

// goTest runs the test of m; overlay "" runs it on the files as they are, whose results go
// test may have kept. The overlay is in the environment, so that programs which the test
// builds have it too.
func (m *mutant) goTest(ctx context.Context, root, overlay string) (out string, ok bool) {
	cmd := exec.CommandContext(ctx, "go", "test", "-timeout", "10m", "-run", m.pattern(), m.pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if overlay != "" {
		cmd.Env = append(cmd.Env, strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	b, err := cmd.CombinedOutput()
	return string(b), err == nil
}

func tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(len(lines)-5, 0):], "\n\t")
}

// pattern is what go test -run takes: a slash parts a test from its subtest.
func (m *mutant) pattern() string {
	if top, sub, ok := strings.Cut(m.test, "/"); ok {
		return "^" + top + "$/^" + sub + "$"
	}
	return "^(" + m.test + ")$"
}
