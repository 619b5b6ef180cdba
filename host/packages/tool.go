package packages

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"openskill/sdk/skill"
)

const (
	// toolTime bounds one run of pip or npm.
	toolTime = 10 * time.Minute
	// maxPrinted bounds what is read of what one prints, in bytes.
	maxPrinted = 64 << 20
)

// capped keeps the beginning of what is written to it.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if room := maxPrinted - c.Len(); room > 0 {
		_, _ = c.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// toolError is how a run of pip or npm failed.
type toolError struct {
	tool, text string
	err        error
}

func (e *toolError) Error() string { return fmt.Sprintf("%s: %v: %s", e.tool, e.err, e.text) }
func (e *toolError) Unwrap() error { return e.err }

// kept are the variables of the host's own that pip and npm get: their settings, and not the
// host's, nor keys of others.
func kept(environ []string) (out []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		up := strings.ToUpper(name)
		own := strings.HasPrefix(up, "PIP_") || strings.HasPrefix(up, "NPM_")
		secret := strings.HasPrefix(up, "OPENSKILL_")
		for _, s := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD"} {
			secret = secret || strings.HasSuffix(up, s)
		}
		if own || !secret {
			out = append(out, v)
		}
	}
	return out
}

// tool runs pip or npm in dir, with the settings that it has on this machine.
func tool(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, toolTime)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(kept(os.Environ()), env...)
	if os.Getenv("HOME") == "" {
		cmd.Env = append(cmd.Env, "HOME="+dir)
	}
	var out, failed capped
	cmd.Stdout, cmd.Stderr = &out, &failed
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out.Bytes(), &toolError{name, strings.TrimSpace(failed.String()), err}
	}
	return out.Bytes(), nil
}

// noTool says that a tool is not on this machine, which installs packages of a language.
func noTool(name string) error {
	return &skill.Error{Op: "packages.Add", Code: skill.ToolInvocationError, Message: name + " not found: install it to add packages"}
}

// copyFile copies at most limit bytes of a file, to a new one.
func copyFile(from, to string, limit int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, limit))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}
