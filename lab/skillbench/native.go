package skillbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"openskill/internal/measure"
)

// Native is the machine's own Python.
type Native struct {
	Path    string // of the interpreter itself, whatever python3 on the PATH is a wrapper for
	Version string
}

// FindNative finds the interpreter behind a name.
func FindNative(ctx context.Context, name string) (*Native, error) {
	out, err := exec.CommandContext(ctx, name, "-c", "import sys; print(sys.executable); print(sys.version.split()[0])").Output()
	path, version, ok := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || !ok || path == "" {
		return nil, fmt.Errorf("native Python does not start: %w", errors.Join(err, errors.New("install python3")))
	}
	return &Native{Path: path, Version: version}, nil
}

// Command is a process of its own for a script, as openSkill would start it
// without a sandbox.
func (n *Native) Command(ctx context.Context, script string, stdin []byte, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, n.Path, append([]string{"-I", "-B", script}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	return cmd
}

// Run starts a script and gives what it printed, and how long all of it took.
func (n *Native) Run(ctx context.Context, script string, stdin []byte, args ...string) ([]byte, time.Duration, error) {
	cmd := n.Command(ctx, script, stdin, args...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	if err != nil {
		err = fmt.Errorf("%w: %.300s", err, problem.Bytes())
	}
	return out, took, err
}

// name is the name of its variants.
func (n *Native) name() string { return "native python3 " + n.Version }

// Started is the variant that starts the interpreter for each call. A nil check
// takes any output.
func (n *Native) Started(script string, stdin []byte, check func([]byte) error, args ...string) measure.Variant {
	return measure.Variant{Name: n.name() + ", started", Run: func(ctx context.Context) (time.Duration, error) {
		out, took, err := n.Run(ctx, script, stdin, args...)
		if err == nil && check != nil {
			err = check(out)
		}
		return took, err
	}}
}
