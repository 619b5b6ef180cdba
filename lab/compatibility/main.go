// Command compatibility writes docs/compatibility.md: how much of public collections of Agent
// Skills the sandbox covers, by openskill skills check --summary, and how many of their scripts
// were compared with native runs.
//
//	compatibility STATE [NAME,DATE=FOLDER…]
//
// The collections are those that make public-skills has fetched into the state folder STATE. A
// further FOLDER is measured, too, and kept in measured.json under its name, for collections
// that no package manager has.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"openskill/host/pysource/preflight"
)

// collection is a row of the page.
type collection struct {
	Name     string             `json:"name"`
	Date     string             `json:"date,omitempty"`
	Digest   string             `json:"digest"`
	Natively string             `json:"-"`
	Summary  *preflight.Summary `json:"summary"`
}

const (
	measured = "compatibility/measured.json"
	page     = "../docs/compatibility.md"
	compared = "../cmd/openskill/internal/parity/community/testdata/summary.json"
	reasons  = 12 // of each collection on the page
)

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("usage: compatibility STATE [NAME,DATE=FOLDER…]"))
	}
	all, err := fetched(os.Args[1])
	if err != nil {
		fail(err)
	}
	kept, err := keep(os.Args[1], os.Args[2:])
	if err != nil {
		fail(err)
	}
	runs, err := readRuns()
	if err != nil {
		fail(err)
	}
	for i, c := range kept {
		for _, r := range runs {
			if r.Package == c.Name+" of "+c.Date {
				kept[i].Natively = fmt.Sprintf("%d of %d", r.Natively, r.Cases)
			}
		}
	}
	if err := os.WriteFile(page, []byte(write(append(kept, all...), runs)), 0o644); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "compatibility:", err)
	os.Exit(1)
}

var pinned = regexp.MustCompile(`(?m)^(?:fetch|wheel) (\S+) (\S+) ([0-9a-f]{64})`)

// run counts recorded runs of the scripts of a collection, or of a category of them.
type run struct {
	Package    string            `json:"package"`
	Scripts    int               `json:"scripts"`
	Cases      int               `json:"cases"`
	Natively   int               `json:"as_natively"`
	Differs    map[string]string `json:"differs"`
	Categories map[string]*run   `json:"categories"`
}

// readRuns reads the counts by the names of collections.
func readRuns() (runs map[string]*run, err error) {
	text, err := os.ReadFile(compared)
	if err == nil {
		err = json.Unmarshal(text, &runs)
	}
	return runs, err
}

// fetched measures the collections that make public-skills has fetched.
func fetched(state string) (all []collection, err error) {
	script, err := os.ReadFile("../scripts/public-skills.sh")
	if err != nil {
		return nil, err
	}
	runs, err := readRuns()
	if err != nil {
		return nil, err
	}
	for _, m := range pinned.FindAllStringSubmatch(string(script), -1) {
		folder := filepath.Join(state, "public-skills", m[1])
		if _, err := os.Stat(folder + ".ready"); err != nil {
			fmt.Fprintf(os.Stderr, "compatibility: %s is not fetched, and left out\n", m[2])
			continue
		}
		c := collection{Name: m[2], Digest: m[3]}
		if r := runs[m[1]]; r != nil {
			c.Natively = fmt.Sprintf("%d of %d", r.Natively, r.Cases)
		}
		if c.Summary, err = summary(state, folder); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// keep measures folders and gives them with those that were measured before.
func keep(state string, args []string) ([]collection, error) {
	var kept []collection
	text, err := os.ReadFile(measured)
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, arg := range args {
		name, folder, _ := strings.Cut(arg, "=")
		c := collection{}
		c.Name, c.Date, _ = strings.Cut(name, ",")
		if c.Digest, err = digest(folder); err != nil {
			return nil, err
		}
		if c.Summary, err = summary(state, folder); err != nil {
			return nil, err
		}
		c.Summary.Proposals = nil // they name strangers' servers
		c.Summary.Reasons = c.Summary.Reasons[:min(reasons, len(c.Summary.Reasons))]
		kept = slices.DeleteFunc(kept, func(k collection) bool { return k.Name == c.Name })
		kept = append(kept, c)
	}
	if len(args) > 0 {
		text, err := json.MarshalIndent(kept, "", " ")
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(measured, append(text, '\n'), 0o644); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

func summary(state, folder string) (*preflight.Summary, error) {
	cmd := exec.Command("../bin/openskill", "skills", "check", folder, "--state", state, "--summary", "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	s := &preflight.Summary{}
	return s, json.Unmarshal(out, s)
}

// digest is what find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum prints.
func digest(folder string) (string, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer root.Close()
	var names []string
	if err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, "./"+name)
		}
		return err
	}); err != nil {
		return "", err
	}
	slices.Sort(names)
	all := sha256.New()
	for _, name := range names {
		f, err := root.Open(name)
		if err != nil {
			return "", err
		}
		one := sha256.New()
		_, err = io.Copy(one, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(all, "%s  %s\n", hex.EncodeToString(one.Sum(nil)), name)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}
