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
func rehearsal(*guest.Input) (any, error) {
	const sample = "2026-01-02T03:04:05.678Z ERROR [worker-1] the first: a line of some length, code=1\n" +
		"02/Jan/2026:03:04:05 +0000 WARN the second\n"
	l := lines{data: []byte(strings.Repeat(sample, 8))}
	records, stats, err := transform(&l, newTextLines(rules{}), 16, maxStdout)
	return Result{Records: &records, ReadAs: ReadAs{Format: "text"}, Stats: stats}, err
}

// Stats is what became of the lines that were read.
type Stats struct {
	Lines     int            `json:"lines"`           // read, blank ones and the header of a CSV file included
	Records   int            `json:"records"`         // returned or written
	Dropped   int            `json:"dropped"`         // not blank, and no record could be made of them
	Reasons   map[string]int `json:"dropped_reasons"` // why, with the count of each
	Truncated bool           `json:"truncated"`       // there is more than was read, returned or written
}

func (s *Stats) drop(why string) {
	s.Dropped++
	s.Reasons[why]++
}

// ReadAs is what the file was taken for.
type ReadAs struct {
	Format      string `json:"format"`
	Encoding    string `json:"encoding"`
	Compression string `json:"compression"`
}

// Result is the skill's data; one of Records and OutputPath is there.
type Result struct {
	Records    *[]json.RawMessage `json:"records,omitempty"`
	OutputPath string             `json:"output_path,omitempty"`
	ReadAs     ReadAs             `json:"read_as"`
	Stats      Stats              `json:"stats"`
}

// parser makes the record of one line, as JSON in the one spelling of encode.go.
// Where it returns nil, why is the reason, or "" for a line of another use (the
// header of a CSV file).
type parser interface {
	record(line string, number int) (rec []byte, why string, err error)
}

func run(in *guest.Input) (any, error) {
	in.Only("input_path", "format", "output", "rules", "limit")
	file := in.Path("input_path")
	format := in.Choice("format", formatOf(baseName(file)), "text", "jsonl", "csv")
	output := in.Choice("output", "stdout", "stdout", "file")
	r := readRules(in)
	most, size := 200, maxStdout
	if output == "file" {
		most, size = unlimited, maxOutput
	}
	limit := in.Integer("limit", most, 1, 10_000)
	if err := in.Err(); err != nil {
		return nil, err
	}

	data, as, cut, err := load(file)
	if err != nil {
		return nil, err
	}
	var p parser
	switch as.Format = format; format {
	case "jsonl":
		p = &jsonLines{rules: r}
	case "csv":
		p = &commaLines{rules: r}
	case "text":
		p = newTextLines(r)
	default:
		mixed := &mixedLines{json: jsonLines{rules: r}, text: newTextLines(r)}
		if as.Format, p = "jsonl", mixed; !mixed.sniff(data) {
			as.Format, p = "text", mixed.text
		}
	}
	l := lines{data: data}
	records, stats, err := transform(&l, p, limit, size)
	if err != nil {
		return nil, err
	}
	stats.Truncated = stats.Truncated || cut
	if l.mended {
		as.Encoding = guest.Windows1252
	}
	result := Result{ReadAs: as, Stats: stats}
	if output == "stdout" {
		result.Records = &records
		return result, nil
	}
	if result.OutputPath, err = save(file, records); err != nil {
		return nil, err
	}
	return result, nil
}

// formatOf tells the format by the file's name, or "" where that says nothing.
func formatOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".jsonl", ".ndjson":
		return "jsonl"
	case ".csv":
		return "csv"
	default:
		return ""
	}
}

// baseName is the file's name without the .gz of a compressed one.
func baseName(file string) string {
	name := path.Base(file)
	if ext := path.Ext(name); strings.ToLower(ext) == ".gz" && name != ext {
		return strings.TrimSuffix(name, ext)
	}
	return name
}

// foreign are the first bytes of compressed files that are not unpacked.
var foreign = []struct{ name, magic string }{
	{"zip", "PK\x03\x04"},
	{"bzip2", "BZh91AY&SY"},
	{"xz", "\xfd7zXZ\x00"},
	{"zstd", "\x28\xb5\x2f\xfd"},
	{"lz4", "\x04\x22\x4d\x18"},
	{"7z", "7z\xbc\xaf\x27\x1c"},
}

// load reads the file, unpacked and in UTF-8 but for stray bytes, or the whole
// lines in its first maxInput bytes; cut says that there was more.
func load(file string) (data []byte, as ReadAs, cut bool, err error) {
	const field = "input_path"
	info, err := guest.Stat(field, file)
	if err != nil {
		return nil, as, false, err
	}
	if !info.Mode().IsRegular() {
		return nil, as, false, guest.Invalid(field, "not_a_file", field+": must be a plain file")
	}
	f, err := os.Open(guest.Root + file)
	if err != nil {
		return nil, as, false, guest.OpenFault(field, err)
	}
	defer f.Close()
	// Of compressed data more is read, because it may be longer than what is in it.
	data, err = io.ReadAll(io.LimitReader(f, 2*maxInput))
	if err != nil {
		return nil, as, false, guest.OpenFault(field, err)
	}
	for _, other := range foreign {
		if bytes.HasPrefix(data, []byte(other.magic)) {
			return nil, as, false, guest.Invalid(field, "compressed", field+": compressed with "+other.name+"; unpack it first, or use gzip")
		}
	}
	as.Compression = "none"
	if guest.Packed(data) {
		as.Compression = "gzip"
		if data, err = guest.Unpack(data, maxInput); err != nil {
			return nil, as, false, guest.Invalid(field, "gzip", field+": "+err.Error()+"; unpack what is left of it with gzip -dc")
		}
	}
	cut = len(data) > maxInput
	data, as.Encoding = guest.Decode(data[:min(len(data), maxInput)])
	if cut {
		data = data[:bytes.LastIndexByte(data, '\n')+1]
	}
	return data, as, cut, nil
}

// transform makes records of lines until the lines or one of the limits end.
func transform(l *lines, p parser, limit, size int) ([]json.RawMessage, Stats, error) {
	records, stats := []json.RawMessage{}, Stats{Reasons: map[string]int{}}
	for len(l.data) > 0 {
		if stats.Lines == maxLines {
			stats.Truncated = true
			break
		}
		stats.Lines++
		line, why := l.next()
		if why != "" {
			stats.drop(why)
			continue
		}
		if line == "" {
			continue
		}
		rec, why, err := p.record(line, stats.Lines)
		if err != nil {
			return nil, Stats{}, err
		}
		if rec == nil {
			if why != "" {
				stats.drop(why)
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
	name := "work/" + outputName(baseName(file)) + ".jsonl"
	if err := os.WriteFile(guest.Root+name, buf.Bytes(), 0o644); err != nil {
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
