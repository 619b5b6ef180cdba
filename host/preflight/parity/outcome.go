package parity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	// Folders are the paths that a script sees its own folder at.
	Folders []string
}

// Run makes an outcome of what the sandbox replied.
func (s *Sandbox) Run(ctx context.Context, folder string, c *Case) (*Outcome, error) {
	began := time.Now()
	reply, err := s.Script(ctx, folder, skill.ScriptRequest{
		Script: c.Script, Args: c.Args, Stdin: []byte(c.Stdin), Limits: skill.Limits{Timeout: c.timeout()},
	})
	var refused *skill.Error
	if errors.As(err, &refused) && refused.Code != skill.Internal && ctx.Err() == nil {
		reply, err = &skill.Reply{Code: refused.Code, Message: refused.Message}, nil
	}
	if err != nil {
		return nil, err
	}
	o := &Outcome{
		Stdout: reply.Stdout, Stderr: reply.Stderr, Exit: int(reply.ExitCode), Files: map[string]string{},
		Took: time.Since(began), Folders: s.Folders,
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

// last gives the end of what was written, for a person.
func last(b []byte, most int) []byte {
	b = bytes.TrimSpace(b)
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return b
}
