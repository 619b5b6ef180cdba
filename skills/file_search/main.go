// Command file_search is the skill file_search: it finds lines with a text in
// the files below ./data. It answers exactly as file_search.py does.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"openskill/skills/internal/guest"
)

const (
	maxFile    = 5 << 20  // bytes of a file, also unpacked; larger ones are skipped
	maxUnpack  = 16 << 20 // bytes that are unpacked in one call
	maxRatio   = 1032     // bytes that one of gzip data can become
	maxEntries = 20_000   // files and folders looked at in one call
	maxDepth   = 32       // folders below root_dir
	maxSnippet = 200      // characters, without the … that mark a cut
	lead       = 60       // characters kept before a hit in a cut line
)

// Why a file or folder is left out, as it is counted in skipped.
const (
	binaryFile  = "binary"
	damagedGzip = "damaged_gzip"
	link        = "link"
	notAFile    = "not_a_file"
	tooDeep     = "too_deep"
	tooLarge    = "too_large"
	unpackLimit = "unpack_limit"
	unreadable  = "unreadable"
)

func main() {
	guest.Rehearse(rehearsal)
	os.Exit(guest.Serve(os.Stdin, os.Stdout, run))
}

func rehearsal(*guest.Input) (any, error) {
	return Result{Matches: []Match{{Path: "./data/x", LineNo: 1, Snippet: "…"}}, Skipped: map[string]int{link: 1}}, nil
}

// Match is one line that holds the query.
type Match struct {
	Path    string `json:"path"` // ./data/…, fit to be an input_path
	LineNo  int    `json:"line_no"`
	Snippet string `json:"snippet"`
}

// Result is the skill's data.
type Result struct {
	Matches   []Match        `json:"matches"`
	Skipped   map[string]int `json:"skipped"` // files that match the glob and folders, by why they were left out
	Truncated bool           `json:"truncated"`
}

func run(in *guest.Input) (any, error) {
	in.Only("query", "root_dir", "glob", "limit")
	query := in.String("query", 1, 1000)
	if strings.ContainsAny(query, "\r\n") {
		in.Fail(guest.Invalid("query", "line_break", "query: must be text of one line, because lines are searched one by one"))
	}
	root := in.Path("root_dir", "./data")
	glob, err := parseGlob(in.String("glob", 1, 200, "**/*"))
	in.Fail(err)
	limit := in.Integer("limit", 20, 1, 1000)
	if err := in.Err(); err != nil {
		return nil, err
	}

	info, err := guest.Stat("root_dir", root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, guest.Invalid("root_dir", "not_a_folder", "root_dir: must be a folder, this is a file")
	}
	s := &search{query: []byte(query), glob: glob, limit: limit, unpack: maxUnpack, result: Result{Matches: []Match{}, Skipped: map[string]int{}}}
	if err := s.folder(root, nil); err != nil {
		return nil, guest.OpenFault("root_dir", err)
	}
	return s.result, nil
}

type search struct {
	query   []byte
	glob    []string
	limit   int
	entries int
	unpack  int  // bytes that may still be unpacked
	stopped bool // nothing more is to be looked at
	result  Result
}

func (s *search) stop() { s.stopped, s.result.Truncated = true, true }

func (s *search) skip(path, why string) {
	s.result.Skipped[why]++
	_, _ = fmt.Fprintf(os.Stderr, "skipped ./%s: %s\n", path, why)
}

// folder searches a folder and what is below it, in the order of whole paths,
// byte by byte. below holds the folder's name from root_dir on. The error says
// that this very folder could not be listed.
func (s *search) folder(path string, below []string) error {
	list, err := s.list(path)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.IsDir() || e.Type().IsRegular() {
			s.entries++
		}
		if s.entries > maxEntries {
			s.stop()
		}
		if s.stopped {
			return nil
		}
		name := path + "/" + e.Name()
		inner := append(slices.Clip(below), e.Name())
		switch {
		case e.IsDir() && len(inner) > maxDepth:
			s.result.Truncated = true
			s.skip(name, tooDeep)
		case e.IsDir():
			if err := s.folder(name, inner); err != nil {
				s.skip(name, unreadable)
			}
		case !matchPath(s.glob, inner): // nobody asked for it
		case e.Type()&fs.ModeSymlink != 0:
			s.skip(name, link)
		case !e.Type().IsRegular():
			s.skip(name, notAFile)
		default:
			s.file(name)
		}
	}
	return nil
}

// list is what is in a folder, but for names that are not UTF-8, sorted so that a
// walk meets whole paths in order.
func (s *search) list(path string) ([]fs.DirEntry, error) {
	f, err := os.Open(guest.Root + path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		return !utf8.ValidString(e.Name())
	})
	key := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(key(a), key(b)) })
	return list, nil
}

// file adds the file's matching lines. A file that is too large, binary or not
// to be read is left out: one bad file must not hide the answers in the others.
func (s *search) file(path string) {
	data, why := s.read(path)
	if why != "" {
		s.skip(path, why)
		return
	}
	if !bytes.Contains(data, s.query) {
		return
	}
	n := 0 // a list of all lines would take many times the file's size
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		n++
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := bytes.Index(line, s.query)
		if at < 0 {
			continue
		}
		if len(s.result.Matches) == s.limit {
			s.stop()
			return
		}
		hit := utf8.RuneCount(line[:at])
		s.result.Matches = append(s.result.Matches, Match{Path: "./" + path, LineNo: n, Snippet: snippet(string(line), hit)})
	}
}

// read returns the text of a file in UTF-8, or why it is left out.
func (s *search) read(path string) (text []byte, why string) {
	f, err := os.Open(guest.Root + path)
	if err != nil {
		return nil, unreadable
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, unreadable
	case len(data) > maxFile:
		return nil, tooLarge
	}
	if guest.Packed(data) {
		// The length that the end of gzip data tells spares unpacking what is too
		// large. Where it lies, or cannot be true, the limits below hold.
		n := len(data)
		if told := length(data); told > maxFile && told <= n*maxRatio {
			return nil, tooLarge
		}
		most := min(maxFile, s.unpack)
		if data, err = guest.Unpack(data, most); err == nil {
			n = len(data)
		} else {
			n = min(most, n*maxRatio) // no more than that was unpacked
		}
		s.unpack = max(0, s.unpack-n)
		switch {
		case err != nil:
			return nil, damagedGzip
		case len(data) > maxFile:
			return nil, tooLarge
		case len(data) > most:
			return nil, unpackLimit
		}
	}
	data, _ = guest.Decode(data)
	ok := bytes.IndexByte(data, 0) < 0
	if ok && !utf8.Valid(data) {
		data, ok = guest.Mend(data)
	}
	if !ok {
		return nil, binaryFile
	}
	return data, ""
}

// length is what the end of gzip data tells of the length of its last member.
func length(packed []byte) int {
	if len(packed) < 4 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(packed[len(packed)-4:]))
}

// snippet is the line, or the part of a long line around the character hit.
func snippet(line string, hit int) string {
	chars := []rune(line)
	if len(chars) <= maxSnippet {
		return line
	}
	start := max(0, min(hit-lead, len(chars)-maxSnippet))
	end := start + maxSnippet
	cut := string(chars[start:end])
	if start > 0 {
		cut = "…" + cut
	}
	if end < len(chars) {
		cut += "…"
	}
	return cut
}
