package preflight

import (
	"io"

	"openskill/internal/firstline"
)

// language is what the ending of a file's name says of it.
type language struct {
	name, title string
	instead     string
	native      bool // no script, but code that a script may load
}

const (
	insteadRewrite = "write it in Python or JavaScript"
)

// languages has the endings of names that agents run, and those of compiled code.
// Anything else is a resource.
var languages = map[string]language{
	".py":    {name: "python"},
	".js":    {name: "javascript"},
	".mjs":   {name: "javascript"},
	".cjs":   {name: "javascript"},
	".ts":    {name: "javascript"},
	".mts":   {name: "javascript"},
	".cts":   {name: "javascript"},
	".tsx":   {name: "javascript"},
	".sh":    {name: "shell"},
	".bash":  {name: "shell"},
	".zsh":   {name: "zsh", title: "zsh scripts", instead: insteadRewrite},
	".fish":  {name: "fish", title: "fish scripts", instead: insteadRewrite},
	".ps1":   {name: "powershell", title: "PowerShell", instead: insteadRewrite},
	".bat":   {name: "batch", title: "batch files", instead: insteadRewrite},
	".cmd":   {name: "batch", title: "batch files", instead: insteadRewrite},
	".rb":    {name: "ruby", title: "Ruby", instead: insteadRewrite},
	".pl":    {name: "perl", title: "Perl", instead: insteadRewrite},
	".php":   {name: "php", title: "PHP", instead: insteadRewrite},
	".lua":   {name: "lua", title: "Lua", instead: insteadRewrite},
	".r":     {name: "r", title: "R", instead: insteadRewrite},
	".cs":    {name: "csharp", title: "C# scripts", instead: insteadRewrite},
	".csx":   {name: "csharp", title: "C# scripts", instead: insteadRewrite},
	".so":    {native: true},
	".pyd":   {native: true},
	".dll":   {native: true},
	".dylib": {native: true},
	".node":  {native: true},
}

// interpreter gives the language of a file whose name has no ending, by its first line: #! and a
// path, as Linux reads it.
func (c *check) interpreter(name string) (language, bool) {
	if c.files[name] < 4 {
		return language{}, false
	}
	f, err := c.root.Open(name)
	if err != nil {
		return language{}, false
	}
	defer f.Close()
	head := make([]byte, firstline.Most)
	n, _ := io.ReadFull(f, head)
	program := firstline.Program(head[:n])
	if program == "" {
		return language{}, false
	}
	ending := firstline.Ending(program)
	if ending == "" {
		return language{name: "other", title: "scripts of " + program, instead: insteadRewrite}, true
	}
	l, ok := languages[ending]
	return l, ok
}
