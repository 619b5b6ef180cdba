package preflight

import (
	"context"
	"path"
	"regexp"
	"strings"
	"sync"
)

// javaScripts finds what a line uses. It takes 3 ms to make, which no start of the program, or of a
// worker, pays.
var javaScripts = sync.OnceValue(func() *struct{ imports, requires, globals, sets, calls, node *regexp.Regexp } {
	return &struct{ imports, requires, globals, sets, calls, node *regexp.Regexp }{
		regexp.MustCompile(`(?:^|[;\s}])(?:import|export)\b[^'"();]*?\bfrom\s*['"]([^'"\n]{1,200})['"]|(?:^|[;\s])import\s*['"]([^'"\n]{1,200})['"]|\bimport\s*\(\s*['"]([^'"\n]{1,200})['"]`),
		regexp.MustCompile(`(?:^|[^.\w$])require\s*\(\s*['"]([^'"\n]{1,200})['"]`),
		// Names of Node, of other runtimes and of browsers that the sandbox has not.
		regexp.MustCompile(`(?:^|[^.\w$'"])((?:Deno|Bun|document|window|localStorage|Atomics|WebAssembly)\.|Symbol\.(?:asyncDispose|dispose)\b|` +
			`new\s+(?:Worker|WebSocket|XMLHttpRequest|BroadcastChannel|(?:Compression|Decompression|TextEncoder|TextDecoder)Stream)\b)`),
		regexp.MustCompile(`/(?:[^/\n\\]|\\.)*\[(?:[^/\n\\]|\\.)*(?:--|&&)(?:[^/\n\\]|\\.)*/[a-z]*v`),
		regexp.MustCompile(`(?:^|[^.\w$])fetch\s*\(`),
		regexp.MustCompile(`(?:^|[^.\w$])(?:require\s*\(|fetch\s*\(|(?:process|Buffer|module|exports|crypto)\.|__dirname|__filename|new\s+(?:URL|TextEncoder|TextDecoder|AbortController)\b)`),
	}
})

// javaScript looks at the lines of a script: it is no parser, so what stands in a
// text or in a comment of several lines counts as well.
func (c *check) javaScript(ctx context.Context, name string, s *Script) error {
	text, err := c.content(name)
	if err != nil || text == nil {
		return err
	}
	s.Runtime = "javascript"
	find := javaScripts()
	quickjs := usesQuickJS(text, find.imports)
	if !c.o.Node && !quickjs && (find.node.Match(text) || path.Ext(name) != ".js" && path.Ext(name) != ".mjs" || importsNode(text, find.imports)) {
		c.find(name, 0, CannotRun, KindLanguage, "Node's modules are not installed on this host", "the operator runs make node-modules and builds again")
		return nil
	}
	told := map[string]bool{}
	n := 0
	for line := range strings.Lines(string(text)) {
		if n++; len(line) > 10_000 { // what a bundler made: it brings what it needs
			continue
		}
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "//") || strings.HasPrefix(line, "*") || strings.HasPrefix(line, "import type ") {
			continue
		}
		for _, m := range find.imports.FindAllStringSubmatch(line, 20) {
			if module := m[1] + m[2] + m[3]; !quickjs || strings.TrimPrefix(module, "qjs:") != "os" {
				c.jsModule(name, n, module, s)
			}
		}
		for _, m := range find.requires.FindAllStringSubmatch(line, 20) {
			c.jsModule(name, n, m[1], s)
		}
		if find.sets.MatchString(line) {
			c.find(name, n, CannotRun, KindSyntax, "sets in regular expressions (-- and && with the flag v) are not there", "write the characters out")
		}
		c.jsLocale(name, n, line)
		if find.calls.MatchString(line) && !told["fetch"] {
			told["fetch"] = true
			c.jsRequests(name, n, "fetch")
		}
		for _, m := range find.globals.FindAllStringSubmatch(line, 20) {
			word := strings.TrimSpace(strings.Trim(m[1], "(."))
			if !told[word] {
				told[word] = true
				c.find(name, n, CannotRun, KindImport, word+" is not there", "use what Node has beside it")
			}
		}
	}
	return c.jsNeeds(ctx, name, string(text), told["fetch"] || jsConnects(string(text)))
}

// jsConnects reports whether a script imports what makes requests: a module of Node, or a package.
func jsConnects(text string) bool {
	find := javaScripts()
	for _, m := range append(find.imports.FindAllStringSubmatch(text, 100), find.requires.FindAllStringSubmatch(text, 100)...) {
		for _, module := range m[1:] {
			kind, node := nodeModules[strings.TrimPrefix(module, "node:")]
			_, missing := missingModules[strings.TrimPrefix(module, "node:")]
			if module != "" && (kind == KindNetwork || !node && !missing && !strings.HasPrefix(module, ".")) {
				return true
			}
		}
	}
	return strings.Contains(text, "fetch(")
}

// importsNode reports whether a script imports a module of Node.
func importsNode(text []byte, imports *regexp.Regexp) bool {
	for _, m := range imports.FindAllSubmatch(text, 50) {
		for _, module := range m[1:] {
			if _, ok := nodeModules[strings.TrimPrefix(string(module), "node:")]; ok {
				return true
			}
		}
	}
	return false
}

// usesQuickJS reports whether a script is written for QuickJS and not for Node.
func usesQuickJS(text []byte, imports *regexp.Regexp) bool {
	for _, m := range imports.FindAllSubmatch(text, 50) {
		for _, module := range m[1:] {
			if string(module) == "std" || strings.HasPrefix(string(module), "qjs:") {
				return true
			}
		}
	}
	return false
}

// nodeModules are Node's own modules that the sandbox has; "" is no obstacle.
var nodeModules = map[string]Kind{
	"assert": "", "assert/strict": "", "async_hooks": "", "buffer": "", "child_process": "", "console": "", "constants": "", "crypto": "", "diagnostics_channel": "", "events": "", "fs": "", "fs/promises": "",
	"http": KindNetwork, "https": KindNetwork, "module": "", "os": "", "path": "", "path/posix": "", "path/win32": "", "perf_hooks": "", "process": "", "punycode": "", "querystring": "", "readline": "",
	"readline/promises": "", "stream": "", "stream/consumers": "", "stream/promises": "", "stream/web": "", "string_decoder": "", "timers": "", "timers/promises": "", "tty": "", "url": "", "util": "", "util/types": "", "zlib": "",
}

// missingModules are those that it has not, and what to do.
var missingModules = map[string]struct {
	kind    Kind
	instead string
}{
	"cluster": {KindProcess, "do the work in one process"}, "worker_threads": {KindThread, "do the work in one thread"},
	"net": {KindNetwork, "use http, https or fetch"}, "tls": {KindNetwork, "use https or fetch"}, "dgram": {KindNetwork, "use http, https or fetch"}, "http2": {KindNetwork, "use https or fetch"},
	"dns": {KindNetwork, "http, https and fetch resolve names"}, "dns/promises": {KindNetwork, "http, https and fetch resolve names"},
	"vm": {KindImport, "import the code"}, "v8": {KindImport, "leave it out"}, "repl": {KindImport, "leave it out"}, "inspector": {KindImport, "leave it out"}, "wasi": {KindImport, "leave it out"},
	"sqlite": {KindImport, "keep the data in a file of JSON"}, "test": {KindImport, "use assert"}, "trace_events": {KindImport, "leave it out"},
}

// jsEndings are what a name may leave out.
var jsEndings = []string{"", ".js", ".json", ".cjs", ".mjs", ".ts", ".tsx", ".mts", ".cts", "/index.js", "/index.ts", "/index.json", "/package.json"}

func (c *check) jsModule(name string, line int, module string, s *Script) {
	switch bare := strings.TrimPrefix(module, "node:"); {
	case module == "std" || strings.HasPrefix(module, "qjs:") || strings.HasPrefix(module, "#") || strings.HasPrefix(module, "/"):
	case strings.HasPrefix(module, "./") || strings.HasPrefix(module, "../") || module == "." || module == "..":
		file := path.Join(path.Dir(name), module)
		for _, ending := range jsEndings {
			if c.jsFile(file+ending, s) {
				return
			}
		}
		if ending := path.Ext(file); ending == ".js" || ending == ".mjs" || ending == ".cjs" { // written in TypeScript
			if c.jsFile(strings.TrimSuffix(file, "js")+"ts", s) || c.jsFile(strings.TrimSuffix(file, "js")+"tsx", s) {
				return
			}
		}
		c.find(name, line, CannotRun, KindImport, module+": there is no such file in the folder", "correct its name")
	default:
		if kind, ok := nodeModules[bare]; ok {
			if kind == KindNetwork {
				c.jsRequests(name, line, bare)
			}
			return
		}
		if m, ok := missingModules[bare]; ok {
			c.find(name, line, CannotRun, m.kind, "Node's module "+bare+" does nothing in the sandbox", m.instead)
			return
		}
		if !c.jsPackage(path.Dir(name), module) {
			c.npmPackage(name, line, module)
		}
	}
}

func (c *check) jsFile(file string, s *Script) bool {
	_, ok := c.files[file]
	if ok {
		s.Modules = append(s.Modules, file)
	}
	return ok
}

// jsPackage reports whether a folder node_modules at or above dir has the package.
func (c *check) jsPackage(dir, module string) bool {
	parts := strings.SplitN(module, "/", 3)
	pkg := parts[0]
	if strings.HasPrefix(pkg, "@") && len(parts) > 1 {
		pkg += "/" + parts[1]
	}
	if c.o.NPM[pkg] {
		return true
	}
	for {
		if info, err := c.root.Stat(path.Join(dir, "node_modules", pkg)); err == nil && info.IsDir() {
			return true
		}
		if dir == "." || dir == "/" {
			return false
		}
		dir = path.Dir(dir)
	}
}

func (c *check) jsRequests(name string, line int, what string) {
	c.find(name, line, Runs, KindNetwork, what+" makes the requests that the skill was granted, and no others", "the operator grants hosts; without a grant each request fails")
}
