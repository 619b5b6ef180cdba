package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"openskill/sdk/skill"
)

// exitEnded is the exit code of module run and script where openSkill, not the guest, ended
// the run. A guest can write what looks like the host's last line to standard error, but it
// cannot produce this code: guestExit lowers codes from 125 on to 124.
const exitEnded = 125

// guestExit ends the command with the exit code of a guest.
func guestExit(code uint32) error { return exit(int(min(code, exitEnded-1))) }

// passesThrough reports whether the streams and the exit code of cmd are those of a guest.
// What openSkill itself says there is one line of JSON.
func passesThrough(cmd *cobra.Command) bool {
	return cmd.Name() == "script" || cmd.HasParent() && cmd.Parent().Name() == "module"
}

// runReport is what --report writes. The host makes all of it: a guest cannot forge it.
type runReport struct {
	EndedBy       string        `json:"ended_by"`        // guest or host
	GuestExitCode *uint32       `json:"guest_exit_code"` // all 32 bits; null where the host ended the run
	Error         *reportError  `json:"error"`           // null where the guest ended the run
	Stats         *statsBody    `json:"stats,omitempty"`
	Result        *skill.Result `json:"result,omitempty"`
	Packages      []string      `json:"packages,omitempty"` // of a script: those that it was given

	file *os.File // nil without --report
	path string
}

type reportError struct {
	Code    skill.Code `json:"code"`
	Message string     `json:"message"`
}

// openReport makes sure, before anything runs, that path can be written; "" writes nothing.
func openReport(path string) (*runReport, error) {
	r := &runReport{path: path}
	if path == "" {
		return r, nil
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, usage("--report %s: not a regular file", quote(path))
	}
	if r.file, err = os.CreateTemp(filepath.Dir(path), ".openskill-report-"); err != nil {
		return nil, usage("--report %s: cannot write the file: %v", quote(path), plain(err))
	}
	return r, nil
}

// finish writes the report and gives the error that ends the command: err as it is where
// the guest ended the run, or nothing ran because of wrong usage; else with exitEnded.
func (r *runReport) finish(err error) error {
	var e *exitError
	ended := errors.As(err, &e)
	if ended && e.exit == exitUsage && e.err != nil {
		r.discard()
		return err
	}
	r.EndedBy = "guest"
	if err != nil && (!ended || e.err != nil) {
		if err = hostEnded(err); !errors.As(err, &e) {
			return err
		}
		r.EndedBy, r.GuestExitCode, r.Error = "host", nil, &reportError{skill.Internal, skill.CleanText(err.Error(), skill.MaxMessage)}
		if se, ok := errors.AsType[*skill.Error](err); ok {
			r.Error.Code, r.Error.Message = se.Code, skill.CleanText(se.Message, skill.MaxMessage)
		}
	}
	if r.file == nil {
		return err
	}
	defer r.discard()
	werr := writeJSON(r.file, r)
	if cerr := r.file.Close(); werr == nil {
		werr = cerr
	}
	if werr == nil {
		werr = os.Rename(r.file.Name(), r.path)
	}
	if werr != nil {
		return hostEnded(hostFailed(werr))
	}
	return err
}

// discard removes an unfinished report.
func (r *runReport) discard() {
	if r.file != nil {
		_ = r.file.Close()           // it may be closed
		_ = os.Remove(r.file.Name()) // it may have its name
	}
}

func hostEnded(err error) error {
	if e, ok := errors.AsType[*exitError](err); ok {
		return &exitError{exitEnded, e.err}
	}
	return &exitError{exitEnded, err}
}
