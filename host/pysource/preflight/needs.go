package preflight

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"openskill/host/pysource"
	"openskill/sdk/skill"
)

// Needs are what the scripts of a folder ask for that an operator can grant or install. Each
// is named once, where it is met first. The lists are never nil.
type Needs struct {
	HTTP     []Need `json:"http"`     // addresses: https://api.example.com, or with methods beside GET and HEAD https://api.example.com,GET,POST
	Env      []Need `json:"env"`      // environment variables
	Commands []Need `json:"commands"` // programs that are started
	Packages []Need `json:"packages"` // of an index, imported or declared
}

// Need is one of them. All text in it is clean.
type Need struct {
	Name      string `json:"name"`
	File      string `json:"file"`                // relative to the folder, with /
	Line      int    `json:"line"`                // 1 is the first; 0: the file as a whole
	Have      bool   `json:"have,omitempty"`      // of a command: the sandbox has it
	Ecosystem string `json:"ecosystem,omitempty"` // of a package: python or npm
	Native    bool   `json:"native,omitempty"`    // of a package: it, or what it depends on, has native code
}

// maxNeeds bounds each list of [Needs], whatever a folder holds.
const maxNeeds = 500

func noNeeds() Needs { return Needs{[]Need{}, []Need{}, []Need{}, []Need{}} }

// need notes a need, once. An address that is met again with other methods gets those, too.
func (c *check) need(list *[]Need, n Need) {
	n.Name, n.File = skill.CleanText(n.Name, 200), skill.CleanText(n.File, 200)
	address, methods, _ := strings.Cut(n.Name, ",")
	for i := range *list {
		old := &(*list)[i]
		if list != &c.report.Needs.HTTP {
			if old.Name == n.Name && old.Ecosystem == n.Ecosystem {
				return
			}
			continue
		}
		if was, before, _ := strings.Cut(old.Name, ","); was == address {
			old.Name = withMethods(address, before+","+methods)
			return
		}
	}
	if len(*list) >= maxNeeds {
		c.report.Cut = true
		return
	}
	*list = append(*list, n)
}

// withMethods gives an address with methods, without them where they are the usual ones.
func withMethods(address, methods string) string {
	all := slices.DeleteFunc(strings.Split(methods, ","), func(m string) bool { return m == "" || m == "GET" })
	if len(all) == 0 {
		return address
	}
	slices.Sort(all)
	return address + ",GET," + strings.Join(slices.Compact(all), ",")
}

// usualVariables are of the system and not of a service: nobody is asked to grant them.
var usualVariables = map[string]bool{
	"HOME": true, "PATH": true, "TMPDIR": true, "TEMP": true, "TMP": true, "USER": true, "USERNAME": true, "LOGNAME": true, "PWD": true,
	"OLDPWD": true, "SHELL": true, "TERM": true, "LANG": true, "COLUMNS": true, "LINES": true, "EDITOR": true, "VISUAL": true, "PAGER": true,
	"DISPLAY": true, "WAYLAND_DISPLAY": true, "NO_COLOR": true, "FORCE_COLOR": true, "COLORTERM": true, "CI": true, "PYTHONPATH": true,
	"VIRTUAL_ENV": true, "APPDATA": true, "LOCALAPPDATA": true, "USERPROFILE": true, "HOSTNAME": true, "UID": true, "EUID": true,
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "NO_PROXY": true, "ALL_PROXY": true, "http_proxy": true, "https_proxy": true, "no_proxy": true, "all_proxy": true,
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// variable notes an environment variable that a script reads.
func (c *check) variable(file string, line int, name string) {
	if variableName.MatchString(name) && !usualVariables[name] && !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "LC_") {
		c.need(&c.report.Needs.Env, Need{Name: name, File: file, Line: line})
	}
}

// unasked are hosts in the names of formats and in examples.
var unasked = regexp.MustCompile(`^(www\.w3\.org|purl\.org|schemas?\.[a-z.]+|json-schema\.org|ns\.adobe\.com|xmlns\.com|([a-z0-9-]+\.)*example(\.(com|org|net))?|your-.*|.*\.local)$`)

var hostName = regexp.MustCompile(`^(([A-Za-z0-9_-]+\.)+[A-Za-z]{2,}|localhost|\d{1,3}(\.\d{1,3}){3})(:\d{1,5})?$`)

// address notes the host of an address, where that is not computed.
func (c *check) address(file string, line int, text, methods string) {
	scheme, rest, ok := strings.Cut(text, "://")
	if scheme = strings.ToLower(scheme); !ok || scheme != "http" && scheme != "https" {
		return
	}
	host := rest
	if i := strings.IndexAny(rest, "/?#"+pysource.Unknown+" \"'`<>)\\,;"); i >= 0 {
		if host = rest[:i]; strings.HasPrefix(rest[i:], pysource.Unknown) {
			return // what follows may be the rest of the host
		}
	}
	host = strings.ToLower(host[strings.LastIndexByte(host, '@')+1:])
	if hostName.MatchString(host) && !unasked.MatchString(host) {
		c.need(&c.report.Needs.HTTP, Need{Name: withMethods(scheme+"://"+host, methods), File: file, Line: line})
	}
}

// connecting are modules of the standard library that make requests. Packages of an index may.
var connecting = map[string]bool{"urllib": true, "http": true, "socket": true, "ssl": true, "xmlrpc": true, "asyncio": true}

// pythonNeeds notes what a program in Python needs.
func (c *check) pythonNeeds(ctx context.Context, file string, m *pysource.Module) error {
	connects := false
	for i := range m.Imports {
		im := &m.Imports[i]
		if top, _, _ := strings.Cut(im.Module, "."); im.Level == 0 && !im.TypeChecking {
			_, known := c.o.Modules(top)
			connects = connects || connecting[top] || !known && len(c.index()[top]) == 0 && missingLibrary[top] == (why{})
		}
	}
	for i := range m.Variables {
		c.variable(file, m.Variables[i].Line, m.Variables[i].Name)
	}
	methods := m.Methods
	looked := map[string]bool{} // programs that the script looks for before it starts them
	for i := range m.Programs {
		if p := &m.Programs[i]; p.Look && len(p.Words) > 0 {
			looked[p.Words[0]] = true
		}
	}
	for i := range m.Programs {
		p := &m.Programs[i]
		if p.Look {
			continue
		}
		r := c.started(file, p)
		if r == nil {
			continue
		}
		for j := range r.commands {
			r.commands[j].guarded = r.commands[j].guarded || looked[r.commands[j].name]
		}
		connects = connects || r.connects
		methods = append(methods, r.methods...)
		if err := c.shellUses(ctx, file, r, nil, nil); err != nil {
			return err
		}
	}
	if connects {
		for i := range m.Addresses {
			c.address(file, m.Addresses[i].Line, m.Addresses[i].Text, strings.Join(methods, ","))
		}
	}
	return nil
}

// started reads the command of a program in Python; nil where it is noted that it cannot be read.
func (c *check) started(file string, p *pysource.Program) *shellText {
	if p.Shell && len(p.Words) > 0 && !strings.HasPrefix(p.Words[0], pysource.Unknown) {
		r, err := readShell(p.Words[0], p.Line)
		if err != nil {
			c.find(file, p.Line, MayDiffer, KindProcess, p.By+" starts a command that cannot be read here", "")
			return nil
		}
		return r
	}
	if len(p.Words) > 2 && strings.HasPrefix(p.Words[0], "python") && p.Words[1] == "-m" {
		if w, ok := missingLibrary[p.Words[2]]; ok {
			c.find(file, p.Line, CannotRun, w.kind, "python3 -m "+p.Words[2]+": "+w.what, w.instead)
			return nil
		}
	}
	r := newShellReader(p.Line)
	if len(p.Words) == 0 {
		r.note("", p.Line)
	} else {
		r.call(p.Words, p.Line)
	}
	return &r.shellText
}

var programName = regexp.MustCompile(`^[A-Za-z0-9_.+@\[-][A-Za-z0-9_.+@\[-]{0,63}$`)

// commandName gives the name of a command: the last part of an absolute path.
func commandName(word string) string {
	if strings.HasPrefix(word, "/") {
		word = path.Base(word)
	}
	if !programName.MatchString(word) {
		return ""
	}
	return word
}

// has reports whether the sandbox has a program.
func (c *check) has(name string) bool { return c.o.Commands != nil && c.o.Commands(name) }
