package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/sdk/skill"
)

// The bounds of what a bundle has of a log.
const (
	logBytes = 4 << 20 // that are read, from its end
	logLines = 2000    // that are kept, the last ones
)

// logFields are the fields of a log line that a bundle keeps. No other may tell of what
// callers sent or got: messages of errors repeat parts of inputs.
var logFields = []string{
	"time", "level", "msg", "code", "status", "success", "skill_id", "version", "runner_type", "latency_ms", "error.code", "fuel_used",
	"memory_peak_bytes", "trace_id", "span_id", "execution_id", "names", "changed", "grace_s",
}

// counts are how much there is in the state folder, by the host's own names.
type counts struct {
	Folders map[string]folderCount `json:"folders"`
	Skills  int                    `json:"skills"`
}

type folderCount struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// writeSupport writes what helps to support a host into a new file: nothing that callers
// sent or got, and no secrets.
func writeSupport(file, log string, s *config.Settings, x *app.Examination) (err error) {
	var lines []byte
	if log != "" {
		if lines, err = logTail(log); err != nil {
			return usage("cannot read --log %s: %s", quote(log), errText(err))
		}
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usage("--bundle %s already exists; choose another file", quote(file))
	}
	if err != nil {
		return hostFailed(err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(file) // half of it helps nobody
			err = hostFailed(err)
		}
	}()
	clean := hider(s)
	zip := gzip.NewWriter(f)
	w := tar.NewWriter(zip)
	now := time.Now()
	for _, part := range []struct {
		name string
		v    any
	}{{"version.json", version()}, {"doctor.json", x}, {"settings.json", reportSettings(s)}, {"counts.json", stateCounts(s, x)}} {
		text, err := json.MarshalIndent(part.v, "", "  ")
		if err == nil {
			err = bundled(w, part.name, clean(text), now)
		}
		if err != nil {
			return err
		}
	}
	if log != "" {
		if err := bundled(w, "log.jsonl", clean(lines), now); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), zip.Close())
}

func bundled(w *tar.Writer, name string, text []byte, at time.Time) error {
	err := w.WriteHeader(&tar.Header{Name: "openskill-support/" + name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(text)), ModTime: at})
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// hider takes every secret out of a text, as it is and as JSON has it.
func hider(s *config.Settings) func([]byte) []byte {
	var pairs []string
	for _, secret := range s.Secrets() {
		quoted, err := json.Marshal(secret)
		if err == nil {
			pairs = append(pairs, strings.Trim(string(quoted), `"`), "[hidden]")
		}
		pairs = append(pairs, secret, "[hidden]")
	}
	r := strings.NewReplacer(pairs...)
	return func(text []byte) []byte { return []byte(r.Replace(string(text))) }
}

// logTail gives the last lines of a log of the host, with the fields that may be seen.
// What is no line of such a log is left out.
func logTail(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(info.Size()-logBytes, 0), logBytes))
	if err != nil {
		return nil, err
	}
	var kept [][]byte
	for line := range bytes.Lines(b) {
		var have map[string]json.RawMessage
		if json.Unmarshal(line, &have) != nil || have["msg"] == nil || string(have["msg"]) == `"stderr"` { // what a skill wrote
			continue
		}
		out := map[string]json.RawMessage{}
		for _, name := range logFields {
			if v, ok := have[name]; ok && len(v) <= 400 {
				out[name] = v
			}
		}
		if text, err := json.Marshal(out); err == nil {
			kept = append(kept, text)
		}
	}
	if len(kept) > logLines {
		kept = kept[len(kept)-logLines:]
	}
	return append(bytes.Join(kept, []byte("\n")), '\n'), nil
}

func stateCounts(s *config.Settings, x *app.Examination) counts {
	c := counts{Folders: map[string]folderCount{}, Skills: len(x.Skills)}
	entries, _ := os.ReadDir(s.StateDir) // there may be none yet
	for _, e := range entries {
		var n folderCount
		_ = filepath.WalkDir(filepath.Join(s.StateDir, e.Name()), func(_ string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if info, err := d.Info(); err == nil {
				n.Files, n.Bytes = n.Files+1, n.Bytes+info.Size()
			}
			return nil
		})
		c.Folders[skill.CleanText(e.Name(), 80)] = n
	}
	return c
}

func errText(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return fmt.Sprint(err)
}
