package parity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"time"

	"openskill/sdk/skill"
)

// Outcome is how a run ended and what it left behind.
type Outcome struct {
	Stdout  []byte
	Stderr  []byte
	Exit    int
	Failed  string            // why there is no exit code: a limit, or a program that cannot be started; "" else
	Files   map[string]string // made or changed: path to SHA-256 in hex
	Took    time.Duration
	Folders []string // the names that the run knew its folder by
}

// Runner runs a case in a folder that is the run's own, and which holds the case's
// files already. Its error is the machine's failure, not the script's.
type Runner interface {
	Run(ctx context.Context, folder string, c *Case) (*Outcome, error)
}

// Sandbox runs scripts in the sandbox.
type Sandbox struct {
	// Script runs one script of a folder and gives all that it left. An error of it
	// whose code is not INTERNAL is about the script.
	Script func(ctx context.Context, folder string, r skill.ScriptRequest) (*skill.Reply, error)
}

// folders are the names that a script in the sandbox knows its own folder by.
func folders(folder string) []string { return []string{"/skills/" + filepath.Base(folder)} }

// Run makes an outcome of what the sandbox replied.
func (s *Sandbox) Run(ctx context.Context, folder string, c *Case) (*Outcome, error) {
	began := time.Now()
	reply, err := s.Script(ctx, folder, skill.ScriptRequest{
		Script: c.Script, Args: c.Args, Stdin: []byte(c.Stdin), Limits: skill.Limits{Timeout: c.timeout()},
	})
	if refused, ok := errors.AsType[*skill.Error](err); ok && refused.Code != skill.Internal && ctx.Err() == nil {
		reply, err = &skill.Reply{Code: refused.Code, Message: refused.Message}, nil
	}
	if err != nil {
		return nil, err
	}
	o := &Outcome{
		Stdout: reply.Stdout, Stderr: reply.Stderr, Exit: int(reply.ExitCode), Files: map[string]string{},
		Took: time.Since(began), Folders: folders(folder),
	}
	if reply.Code != "" {
		o.Failed = string(reply.Code) + ": " + reply.Message
	}
	before, err := snapshot(folder)
	if err != nil {
		return nil, err
	}
	for _, a := range reply.Artifacts {
		// Written again as it was is no change.
		if sum := digest(a.Data); before[a.Name] != sum {
			o.Files[a.Name] = sum
		}
	}
	return o, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// last gives the last line of what was written, which names an error.
func last(b []byte) string {
	b = bytes.TrimSpace(b)
	b = b[bytes.LastIndexByte(b, '\n')+1:]
	return skill.CleanText(string(b), 300)
}
