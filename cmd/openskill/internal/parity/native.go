package parity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// Native runs scripts by this machine's own Python, with the rights of this process,
// and with an environment of nothing but where things are.
type Native struct {
	python  string
	version string
}

// NewNative finds an interpreter; "" is python3 of the PATH. The error is a
// *skill.Error of code TOOL_INVOCATION_ERROR that says what is missing.
func NewNative(ctx context.Context, python string) (*Native, error) {
	if python == "" {
		python = "python3"
	}
	// What lies in the PATH may be a script of a version manager, which wants the
	// environment that scripts do not get.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-I", "-c", "import sys, platform; print(sys.executable); print(platform.python_version())").Output()
	path, version, ok := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || !ok {
		return nil, &skill.Error{
			Op: "parity.NewNative", Code: skill.ToolInvocationError, Err: err,
			Message: fmt.Sprintf("Python not found: %s does not start; name another one with --python", skill.CleanText(python, 80)),
		}
	}
	return &Native{python: path, version: version}, nil
}

// Version of the interpreter, such as 3.11.7.
func (n *Native) Version() string { return n.version }

// maxOutput is how much of a stream is kept.
const maxOutput = 8 << 20

// Run executes the script and waits for it. What it left running is ended.
func (n *Native) Run(ctx context.Context, folder string, c *Case) (*Outcome, error) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	before, err := snapshot(folder)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "openskill-parity-home-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	limit, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	args := append([]string{"-B", "-s", "-X", "utf8", filepath.FromSlash(c.Script)}, c.Args...)
	cmd := exec.CommandContext(limit, n.python, args...)
	cmd.Dir = folder
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "TZ=UTC"}
	cmd.Stdin = strings.NewReader(c.Stdin)
	var stdout, stderr capped
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	apart(cmd)
	began := time.Now()
	err = cmd.Run()
	o := &Outcome{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Took: time.Since(began), Folders: []string{folder}}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limit.Err() != nil:
		o.Failed = fmt.Sprintf("it did not end within %v", c.timeout())
	case errors.As(err, &ended) && ended.ExitCode() < 0:
		o.Failed = "it was ended: " + ended.Error()
	case errors.As(err, &ended):
		o.Exit = ended.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, err
	}
	after, err := snapshot(folder)
	if err != nil {
		o.Failed = skill.CleanText(err.Error(), 200)
		return o, nil
	}
	o.Files = changed(before, after)
	return o, nil
}

// capped keeps the first bytes of a stream and takes the rest.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if room := maxOutput - c.Len(); room > 0 {
		c.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
