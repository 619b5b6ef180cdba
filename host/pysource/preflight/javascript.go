package preflight

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// javaScripts finds what a line uses. It takes 3 ms to make, which no start of the program, or of a
// worker, pays.
var javaScripts = sync.OnceValue(func() *struct{ imports, requires, globals, sets *regexp.Regexp } {
	return &struct{ imports, requires, globals, sets *regexp.Regexp }{
		regexp.MustCompile(`(?:^|[;\s}])(?:import|export)\b[^'"();]*?\bfrom\s*['"]([^'"\n]{1,200})['"]|(?:^|[;\s])import\s*['"]([^'"\n]{1,200})['"]|\bimport\s*\(\s*['"]([^'"\n]{1,200})['"]`),
		regexp.MustCompile(`(?:^|[^.\w$])require\s*\(\s*['"]([^'"\n]{1,200})['"]`),
		// Names of Node 20 and of browsers that QuickJS has not.
		regexp.MustCompile(`(?:^|[^.\w$'"])((?:fetch|structuredClone|atob|btoa|setImmediate|clearImmediate)\s*\(|` +
			`(?:process|Buffer|Deno|Bun|document|window|Intl|localStorage|global|Atomics|WebAssembly|crypto|URL|AbortSignal)\.|module\.exports\b|exports\.\w|` +
			`performance\.(?:mark|measure|getEntries|timerify)|Symbol\.(?:asyncDispose|dispose)\b|__dirname|__filename|` +
			`new\s+(?:URL|URLSearchParams|TextEncoder|TextDecoder|Worker|WebSocket|XMLHttpRequest|AbortController|Event|EventTarget|CustomEvent|Blob|File|FormData|Headers|` +
			`Request|Response|BroadcastChannel|MessageChannel|(?:Readable|Writable|Transform|Compression|Decompression|TextEncoder|TextDecoder)Stream|PerformanceObserver)\b)`),
		regexp.MustCompile(`/(?:[^/\n\\]|\\.)*\[(?:[^/\n\\]|\\.)*(?:--|&&)(?:[^/\n\\]|\\.)*/[a-z]*v`),
	}
})

// javaScript looks at the lines of a script: it is no parser, so what stands in a
// text or in a comment of several lines counts as well.
func (c *check) javaScript(name string, s *Script) error {
	text, err := c.content(name)
	if err != nil || text == nil {
		return err
	}
	s.Runtime = "javascript"
	find := javaScripts()
	told := map[string]bool{}
	n := 0
	for line := range strings.Lines(string(text)) {
		if n++; len(line) > 10_000 { // what a bundler made: it brings what it needs
			continue
		}
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "//") || strings.HasPrefix(line, "*") {
			continue
		}
		for _, m := range find.imports.FindAllStringSubmatch(line, 20) {
			c.jsModule(name, n, m[1]+m[2]+m[3], s)
		}
		for _, m := range find.requires.FindAllStringSubmatch(line, 20) {
			instead := "write import … from with a module of the folder; what Node brings is not there"
			if strings.HasSuffix(m[1], ".json") {
				instead = insteadJSON
			}
			c.find(name, n, CannotRun, KindImport, "require("+m[1]+"): there is no require", instead)
		}
		if find.sets.MatchString(line) {
			c.find(name, n, CannotRun, KindSyntax, "sets in regular expressions (-- and && with the flag v) are not there", "write the characters out")
		}
		c.jsLocale(name, n, line)
		for _, m := range find.globals.FindAllStringSubmatch(line, 20) {
			word := strings.TrimSpace(strings.Trim(m[1], "(."))
			if !told[word] {
				told[word] = true
				c.find(name, n, CannotRun, KindImport, word+" is not there: the language and the modules std and os are", jsInstead(word))
			}
		}
	}
	return nil
}

func (c *check) jsModule(name string, line int, module string, s *Script) {
	switch bare := strings.TrimPrefix(module, "qjs:"); {
	case bare == "std" || bare == "os":
	case strings.HasSuffix(module, ".json"):
		c.find(name, line, CannotRun, KindImport, "import "+module+": JSON files cannot be imported", insteadJSON)
	case strings.HasPrefix(module, "./") || strings.HasPrefix(module, "../"):
		file := path.Join(path.Dir(name), module)
		if _, ok := c.files[file]; ok {
			s.Modules = append(s.Modules, file)
			return
		}
		instead := "names of modules have their ending: ./x.mjs"
		c.find(name, line, CannotRun, KindImport, "import "+module+": there is no such file in the folder", instead)
	default:
		c.find(name, line, CannotRun, KindImport, "import "+module+": modules of Node and of its registry are not there", "put the module into the folder, or bundle it into the script")
	}
}

const insteadJSON = "read it by JSON.parse(std.loadFile(path))"

func jsInstead(word string) string {
	switch word {
	case "fetch", "new WebSocket", "new XMLHttpRequest":
		return noNetwork
	case "process":
		return "arguments are in scriptArgs, standard input is std.in, std.exit(code) ends the script"
	case "Intl":
		return "format numbers and dates by hand"
	}
	return "use what the language has"
}
