// Command official runs the cases of the Agent Skills of github.com/anthropics/skills in the sandbox, and writes the table
// of docs/authors.md that says what each can do here.
//
//	official FOLDER
//
// FOLDER has the skills. Each case is code as a model would write it by the SKILL.md: it sees the skill's folder, and must
// end with exit code 0. Its first two lines say what it shows, and what the skill cannot do here.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

//go:embed cases
var files embed.FS

// The table stands between these lines of the page.
const (
	page  = "../docs/authors.md"
	begin = "<!-- official: written by a command, not by hand -->\n"
	end   = "<!-- end -->\n"
)

// officialCase is the code of a skill.
type officialCase struct {
	skill, file string
	can, cannot string
}

// cases returns the cases by name of their skill.
func cases() ([]officialCase, error) {
	names, err := fs.Glob(files, "cases/*")
	if err != nil {
		return nil, err
	}
	all := make([]officialCase, len(names))
	for i, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c := officialCase{skill: strings.TrimSuffix(path.Base(name), path.Ext(name)), file: name}
		lines := strings.SplitN(string(text), "\n", 3)
		var ok [2]bool
		_, c.can, ok[0] = strings.Cut(lines[0], " can: ")
		_, c.cannot, ok[1] = strings.Cut(lines[1], " cannot:")
		if !ok[0] || !ok[1] {
			return nil, fmt.Errorf("%s does not say what it shows", name)
		}
		c.cannot = strings.TrimSpace(c.cannot)
		all[i] = c
	}
	return all, nil
}

// run runs a case by the program in ../bin, and returns what it printed.
func (c *officialCase) run(ctx context.Context, folder string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	file, err := filepath.Abs(filepath.Join("official", c.file))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "bin/openskill", "code", file, "--agent-skills", folder, "--agent-skill", c.skill)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "OPENSKILL_TIMEOUT_MS=120000/120000")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// table returns the table of cases that ran.
func table(all []officialCase) string {
	var b strings.Builder
	b.WriteString("| skill | can, by code that ran here | cannot |\n|---|---|---|\n")
	for _, c := range all {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.skill, c.can, c.cannot)
	}
	return b.String()
}

// replaced returns the page with another table.
func replaced(text, table string) (string, error) {
	head, rest, ok := strings.Cut(text, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", errors.New(page + " has no place for the table")
	}
	return head + begin + table + end + tail, nil
}

func main() {
	if err := official(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "official:", err)
		os.Exit(1)
	}
}

func official(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: official FOLDER")
	}
	all, err := cases()
	if err != nil {
		return err
	}
	for i := range all {
		began := time.Now()
		if out, err := all[i].run(context.Background(), args[0]); err != nil {
			return fmt.Errorf("%s: %w\n%s", all[i].skill, err, out)
		}
		fmt.Printf("%s %.1f s\n", all[i].skill, time.Since(began).Seconds())
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	changed, err := replaced(string(text), table(all))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(changed), 0o644)
}
