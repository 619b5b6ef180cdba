// Command log_transform is the skill log_transform: it turns a log file below
// ./data into records. It answers exactly as log_transform.py does, and the
// files of both are the same byte for byte.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"openskill/skills/internal/guest"
)

const (
	maxInput  = 5 << 20  // bytes of the file that are read
	maxLine   = 64 << 10 // bytes of a line; longer ones are dropped
	maxLines  = 100_000  // lines that are read
	maxStdout = 1 << 20  // bytes of records in an answer
	maxOutput = 8 << 20  // bytes of records in a file
	unlimited = maxLines // records in a file, where no limit is given
)

func main() {
	guest.Rehearse(rehearsal)
	os.Exit(guest.Serve(os.Stdin, os.Stdout, run))
}

// rehearsal makes records of lines of its own.
func rehearsal(guest.Input) (any, error) {
	const lines = "2026-01-02T03:04:05.678Z ERROR [worker-1] the first: a line of some length, code=1\n" +
		"02/Jan/2026:03:04:05 +0000 WARN the second\n"
	records, stats, err := transform([]byte(strings.Repeat(lines, 8)), newTextLines(rules{}), 16, maxStdout)
	return Result{Records: &records, Stats: stats}, err
}

// Stats is what became of the lines that were read.
type Stats struct {
	Lines     int  `json:"lines"`     // read, blank ones and the header of a CSV file included
	Records   int  `json:"records"`   // returned or written
	Dropped   int  `json:"dropped"`   // not blank, and no record could be made of them
	Truncated bool `json:"truncated"` // there is more than was read, returned or written
}

// Result is the skill's data; one of Records and OutputPath is there.
type Result struct {
	Records    *[]json.RawMessage `json:"records,omitempty"`
	OutputPath string             `json:"output_path,omitempty"`
	Stats      Stats              `json:"stats"`
}

// parser makes the record of one line, as JSON in the one spelling of encode.go.
// It returns nil for a line that is not a record; used says whether the line was
// of another use (the header of a CSV file) and thus is not dropped.
type parser interface {
	record(line string, number int) (rec []byte, used bool, err error)
}

func run(in guest.Input) (any, error) {
	if err := in.Only("", "", "input_path", "format", "output", "rules", "limit"); err != nil {
		return nil, err
	}
	file, err := in.String("input_path", "", 0, guest.MaxPath)
	if err != nil {
		return nil, err
	}
	if file, err = guest.DataPath("input_path", file); err != nil {
		return nil, err
	}
	format, err := in.Choice("format", formatOf(file), "text", "jsonl", "csv")
	if err != nil {
		return nil, err
	}
	output, err := in.Choice("output", "stdout", "stdout", "file")
	if err != nil {
		return nil, err
	}
	r, err := readRules(in)
	if err != nil {
		return nil, err
	}
	most, size := 200, maxStdout
	if output == "file" {
		most, size = unlimited, maxOutput
	}
	limit, err := in.Integer("limit", most, 1, 10_000)
	if err != nil {
		return nil, err
	}

	data, cut, err := load(file)
	if err != nil {
		return nil, err
	}
	var p parser
	switch format {
	case "jsonl":
		p = &jsonLines{rules: r}
	case "csv":
		p = &commaLines{rules: r}
	default:
		p = newTextLines(r)
	}
	records, stats, err := transform(data, p, limit, size)
	if err != nil {
		return nil, err
	}
	stats.Truncated = stats.Truncated || cut
	if output == "stdout" {
		return Result{Records: &records, Stats: stats}, nil
	}
	name, err := save(file, records)
	if err != nil {
		return nil, err
	}
	return Result{OutputPath: name, Stats: stats}, nil
}

// formatOf guesses the format by the file's name.
func formatOf(file string) string {
	switch strings.ToLower(path.Ext(file)) {
	case ".jsonl", ".ndjson":
		return "jsonl"
	case ".csv":
		return "csv"
	default:
		return "text"
	}
}

// load reads the file, or the whole lines in its first maxInput bytes; cut says
// that there was more.
func load(file string) (data []byte, cut bool, err error) {
	const field = "input_path"
	info, err := guest.Stat(field, file)
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() {
		return nil, false, guest.Invalid(field, "not_a_file", field+": must be a plain file")
	}
	f, err := os.Open(guest.Root + file)
	if err != nil {
		return nil, false, guest.OpenFault(field, err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	data, err = io.ReadAll(io.LimitReader(f, maxInput+1))
	if err != nil {
		return nil, false, guest.OpenFault(field, err)
	}
	if len(data) > maxInput {
		cut = true
		data = data[:bytes.LastIndexByte(data[:maxInput], '\n')+1]
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), cut, nil
}

// transform makes records of lines until the lines or one of the limits end.
func transform(data []byte, p parser, limit, size int) ([]json.RawMessage, Stats, error) {
	records, stats := []json.RawMessage{}, Stats{}
	for len(data) > 0 {
		if stats.Lines == maxLines {
			stats.Truncated = true
			break
		}
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		stats.Lines++
		if len(bytes.Trim(line, " \t")) == 0 {
			continue
		}
		if len(line) > maxLine || !utf8.Valid(line) {
			stats.Dropped++
			continue
		}
		rec, used, err := p.record(string(line), stats.Lines)
		if err != nil {
			return nil, Stats{}, err
		}
		if rec == nil {
			if !used {
				stats.Dropped++
			}
			continue
		}
		if size -= len(rec) + 1; size < 0 || len(records) == limit {
			stats.Lines-- // this line is the first of what is left out
			stats.Truncated = true
			break
		}
		records = append(records, rec)
	}
	stats.Records = len(records)
	return records, stats, nil
}

// save writes the records as JSON lines to scratch and returns the file's path.
func save(file string, records []json.RawMessage) (string, error) {
	var buf bytes.Buffer
	for _, rec := range records {
		buf.Write(rec)
		buf.WriteByte('\n')
	}
	name := "work/" + outputName(path.Base(file)) + ".jsonl"
	if err := os.WriteFile(guest.Root+name, buf.Bytes(), 0o644); err != nil { //nolint:gosec // a log's records, in scratch
		fault := &guest.Fault{Code: guest.Internal, Field: "output", Reason: "write", Message: "output: the file could not be written"}
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
			fault.Reason, fault.Message = "no_scratch", "output: this skill was given no ./work folder to write to; use stdout"
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
			fault.Message = "output: the records do not fit the scratch space; lower limit"
		}
		return "", fault
	}
	return name, nil
}

// outputName is the file's name without its extension, short enough for any
// file system.
func outputName(base string) string {
	if dot := strings.LastIndexByte(base, '.'); dot > 0 {
		base = base[:dot]
	}
	if chars := []rune(base); len(chars) > 60 {
		base = string(chars[:60])
	}
	return base
}
