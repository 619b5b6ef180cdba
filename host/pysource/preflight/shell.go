package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"openskill/host/pysource"
	"openskill/sdk/skill"
)

// shellScript looks at a script for the shell: what it starts, reads and asks.
func (c *check) shellScript(ctx context.Context, name string, s *Script) error {
	s.Runtime = "shell"
	return c.shellFile(ctx, name, s, map[string]bool{}, 0)
}

// shellFile looks at one file, and at those of the folder that it reads into itself. Their
// functions are added to known.
func (c *check) shellFile(ctx context.Context, name string, s *Script, known map[string]bool, deep int) error {
	text, err := c.content(name)
	if err != nil || text == nil {
		return err
	}
	if at := bytes.Index(text, []byte("\r\n")); at >= 0 {
		c.find(name, 1+bytes.Count(text[:at], []byte("\n")), CannotRun, KindSyntax, "its lines end in CR and LF, which no shell reads", "remove the CR of each line")
		return nil
	}
	r, err := readShell(string(text), 1)
	if err != nil {
		c.unreadable(name, 1, err)
		return nil
	}
	for f := range r.functions {
		known[f] = true
	}
	for _, source := range r.sources {
		file := c.fileOf(name, source.name)
		switch {
		case file == "" && !strings.Contains(source.name, pysource.Unknown):
			c.find(name, source.line, MayDiffer, KindFile, source.name+" is read, and is not in the folder", insteadFiles)
		case file != "" && !slices.Contains(s.Modules, file) && file != name && deep < 8:
			s.Modules = append(s.Modules, file)
			if err := c.shellFile(ctx, file, s, known, deep+1); err != nil {
				return err
			}
		}
	}
	return c.shellUses(ctx, name, r, known, s)
}

// unreadable notes a text that the parser refuses.
func (c *check) unreadable(name string, line int, err error) {
	var limit limitError
	switch parse, ok := errors.AsType[syntax.ParseError](err); {
	case errors.As(err, &limit):
		c.find(name, 0, MayDiffer, KindLimit, limit.Error(), "")
	case ok:
		c.find(name, line-1+int(parse.Pos.Line()), CannotRun, KindSyntax, "the shell cannot read it: "+parse.Text, "")
	default:
		c.find(name, line, CannotRun, KindSyntax, "the shell cannot read it: "+err.Error(), "")
	}
}

// shellUses notes what a text for the shell needs. s is nil for a text within a program.
func (c *check) shellUses(ctx context.Context, name string, r *shellText, known map[string]bool, s *Script) error {
	told := map[string]bool{}
	for _, cmd := range r.commands {
		if key := fmt.Sprint(cmd.name, cmd.guarded); told[key] || known[cmd.name] || told[cmd.name+"false"] {
			continue
		} else {
			told[key] = true
		}
		if cmd.name == "" {
			c.find(name, cmd.line, MayDiffer, KindProcess, "it starts a program whose name is computed: the sandbox has the commands of the shell, and no others", "")
			continue
		}
		if strings.Contains(cmd.name, "/") {
			c.ownProgram(name, cmd.line, cmd.name, s)
			continue
		}
		if of := c.functionOf(cmd.name); of != "" && of != name && !c.has(cmd.name) && (c.o.Builtins == nil || !c.o.Builtins(cmd.name)) {
			c.find(name, cmd.line, MayDiffer, KindProcess, cmd.name+" is a function of "+of+", which this file does not read itself", "")
			continue
		}
		c.program(name, cmd.line, cmd.name, cmd.guarded, c.o.Builtins)
	}
	for _, v := range r.variables {
		c.variable(name, v.Line, v.Name)
	}
	if r.connects {
		for _, a := range r.addresses {
			c.address(name, a.Line, a.Text, strings.Join(r.methods, ","))
		}
	}
	for _, p := range r.python {
		if err := c.inlinePython(ctx, name, p); err != nil {
			return err
		}
	}
	return nil
}

// functionLine is the head of a function's definition.
var functionLine = regexp.MustCompile(`(?m)^[ \t]*(?:([A-Za-z_][\w-]*)[ \t]*\(\)|function[ \t]+([A-Za-z_][\w-]*))`)

// functionOf gives the file of the folder that has a function of this name: libraries of shell
// scripts use those of each other, which the script reads. "": there is none.
func (c *check) functionOf(name string) string {
	if c.functions != nil {
		return c.functions[name]
	}
	c.functions = map[string]string{}
	left := c.o.Total
	for _, file := range c.order {
		if e := strings.ToLower(path.Ext(file)); e != ".sh" && e != ".bash" || c.files[file] > c.o.Bytes || left < c.files[file] {
			continue
		}
		left -= c.files[file]
		text, err := c.root.ReadFile(file)
		if err != nil {
			continue
		}
		for _, m := range functionLine.FindAllSubmatch(text, -1) {
			if f := string(m[1]) + string(m[2]); c.functions[f] == "" {
				c.functions[f] = file
			}
		}
	}
	return c.functions[name]
}

// program notes a program that is started: the sandbox has it or not.
func (c *check) program(file string, line int, name string, guarded bool, also func(string) bool) {
	have := c.has(name)
	if !have && also != nil && also(name) {
		return // of the shell itself
	}
	c.need(&c.report.Needs.Commands, Need{Name: name, File: file, Line: line, Have: have})
	switch {
	case have:
	case guarded:
		c.find(file, line, MayDiffer, KindProcess, name+" is not there, and the script looks for it first", "")
	default:
		c.find(file, line, CannotRun, KindProcess, name+" is not there: command not found (127)", "do it with the commands of the shell, in Python or in JavaScript, or give its output as an argument or on standard input")
	}
}

// ownProgram notes a program that is a file. Its own findings count for the script.
func (c *check) ownProgram(file string, line int, name string, s *Script) {
	if own := c.fileOf(file, name); own != "" {
		if s != nil && own != file && !slices.Contains(s.Modules, own) {
			s.Modules = append(s.Modules, own)
		}
		return
	}
	if strings.HasPrefix(name, pysource.Unknown) || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		c.find(file, line, MayDiffer, KindProcess, "it starts a file that is not in the folder, or whose name is computed", "")
		return
	}
	base := path.Base(name)
	if programName.MatchString(base) {
		c.need(&c.report.Needs.Commands, Need{Name: base, File: file, Line: line})
	}
	c.find(file, line, CannotRun, KindProcess, name+" is not there: the sandbox shows the skill's folder alone", insteadFiles)
}

// fileOf finds the file of the folder that a path in a script means: by its last part, since
// scripts compute the folder that they are in.
func (c *check) fileOf(from, name string) string {
	base := path.Base(name)
	if base == "." || base == "/" || strings.Contains(base, pysource.Unknown) {
		return ""
	}
	if at := path.Join(path.Dir(from), name); c.files[at] > 0 {
		return at
	}
	if c.bases == nil {
		c.bases = map[string]string{}
		for _, f := range c.order {
			if c.bases[path.Base(f)] == "" {
				c.bases[path.Base(f)] = f
			}
		}
	}
	return c.bases[base]
}

// inlinePython looks at a program in Python that a shell script brings.
func (c *check) inlinePython(ctx context.Context, name string, p inlineText) error {
	if c.read += int64(len(p.text)); c.read > c.o.Total || strings.TrimSpace(p.text) == "" {
		return nil
	}
	m, err := c.o.Python.Analyze(ctx, c.o.Tenant, []byte(strings.ReplaceAll(p.text, pysource.Unknown, "_")))
	if err != nil && skill.CodeOf(err) != skill.InvalidArgument {
		return err
	}
	if err != nil || m.Problem != nil { // it may be put together by the script
		c.find(name, p.line, MayDiffer, KindLimit, "its program in Python cannot be read here", "")
		return nil
	}
	below(m, p.line-1)
	return c.analyzed(ctx, name, &source{runtime: c.o.Default, imports: map[string]bool{}}, m)
}

// below moves what was found in a program down by lines.
func below(m *pysource.Module, lines int) {
	for i := range m.Imports {
		m.Imports[i].Line += lines
	}
	for i := range m.Uses {
		m.Uses[i].Line += lines
	}
	for i := range m.Programs {
		m.Programs[i].Line += lines
	}
	for i := range m.Variables {
		m.Variables[i].Line += lines
	}
	for i := range m.Addresses {
		m.Addresses[i].Line += lines
	}
}
