package preflight

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"openskill/host/pysource"
)

// javaNeeds finds what a script in JavaScript asks for. It is no parser: what a function is
// given by another one is followed one step, from the first parameter to a call.
var javaNeeds = sync.OnceValue(func() *struct{ env, taken, taking, url, method, call, promised, function, arrow, value *regexp.Regexp } {
	return &struct{ env, taken, taking, url, method, call, promised, function, arrow, value *regexp.Regexp }{
		regexp.MustCompile(`\bprocess\.env(?:\??\.([A-Za-z_]\w{0,99})|\[\s*['"]([A-Za-z_]\w{0,99})['"]\s*\])(\s*(?:\?\?|\|\|)?=[^=])?`),
		regexp.MustCompile(`\{([^{}]+)\}\s*=\s*process\.env\b`),
		regexp.MustCompile(`([A-Za-z_]\w*)\s*(?:[:=][^,]*)?(?:,|$)`),
		regexp.MustCompile("[\"'`](https?://[^\"'`\\s]+)"),
		regexp.MustCompile(`(?i)\bmethod['"]?\s*:\s*['"](POST|PUT|PATCH|DELETE)['"]|\.(post|put|patch|delete)\s*(?:<[^()]*>)?\(\s*['"` + "`" + `A-Z]`),
		regexp.MustCompile("(?:^|[^.\\w$]|\\b(?:child_process|childProcess|cp|util)\\.)([A-Za-z_$][\\w$]{0,60})\\s*\\(\\s*(?:\"((?:[^\"\\\\\\n]|\\\\.)+)\"|'((?:[^'\\\\\\n]|\\\\.)+)'|`((?:[^`\\\\]|\\\\.)+)`|([A-Za-z_$][\\w$.]{0,60}))\\s*(?:,\\s*\\[\\s*((?:['\"][^'\"\\n]*['\"]\\s*,?\\s*){0,8}))?"),
		regexp.MustCompile(`\b(?:const|let|var)\s+([\w$]+)\s*=\s*(?:util\.)?promisify\s*\(\s*(?:\w+\.)?(exec|execFile)\s*\)`),
		regexp.MustCompile(`\bfunction\s+([\w$]+)\s*(?:<[^<>]*>)?\(\s*([\w$]+)`),
		regexp.MustCompile(`\b(?:const|let|var)\s+([\w$]+)\s*=\s*(?:async\s*)?(?:\(\s*([\w$]+)[^()]*\)[^=;{}]*=>|([\w$]+)\s*=>)`),
		regexp.MustCompile("\\b(?:const|let|var)\\s+([\\w$]+)\\s*=\\s*(?:process\\.env\\.\\w+\\s*(?:\\|\\||\\?\\?)\\s*)?(?:\"([^\"\\n]*)\"|'([^'\\n]*)'|`([^`]*)`)"),
	}
})

// jsStarters are functions of child_process, and whether they take a text for the shell.
var jsStarters = map[string]bool{"exec": true, "execSync": true, "spawn": false, "spawnSync": false, "execFile": false, "execFileSync": false}

var jsInserted = regexp.MustCompile(`\$\{[^{}]*\}`)

// jsNeeds notes what a script in JavaScript asks for.
func (c *check) jsNeeds(ctx context.Context, name string, text string, connects bool) error {
	find := javaNeeds()
	lines := lineCounter(text)
	for _, m := range find.env.FindAllStringSubmatchIndex(text, maxCommands) {
		if m[6] < 0 { // it is not set
			c.variable(name, lines(m[0]), group(text, m, 1)+group(text, m, 2))
		}
	}
	for _, m := range find.taken.FindAllStringSubmatchIndex(text, 100) {
		for _, n := range find.taking.FindAllStringSubmatch(group(text, m, 1), 100) {
			c.variable(name, lines(m[0]), n[1])
		}
	}
	started, methods, err := c.jsPrograms(ctx, name, text, lines)
	if err != nil || !connects && !started {
		return err
	}
	for _, m := range find.method.FindAllStringSubmatch(text, maxCommands) {
		methods = append(methods, strings.ToUpper(m[1]+m[2]))
	}
	for _, m := range find.url.FindAllStringSubmatchIndex(text, maxCommands) {
		start := strings.LastIndexByte(text[:m[0]], '\n') + 1
		if line := strings.TrimSpace(text[start:m[0]]); !strings.Contains(line, "console.") && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "*") {
			c.address(name, lines(m[0]), jsInserted.ReplaceAllString(strings.ReplaceAll(group(text, m, 1), "${", pysource.Unknown), pysource.Unknown), strings.Join(methods, ","))
		}
	}
	return nil
}

// group is a group of a match; "" where it has none.
func group(text string, m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return text[m[2*n]:m[2*n+1]]
}

// lineCounter tells the line of a place in a text; places are asked for in their order, or again.
func lineCounter(text string) func(at int) int {
	last, line := 0, 1
	return func(at int) int {
		if at < last {
			last, line = 0, 1
		}
		line += strings.Count(text[last:at], "\n")
		last = at
		return line
	}
}

// jsPrograms notes the programs that a script starts by child_process, and the methods of those
// that make requests.
func (c *check) jsPrograms(ctx context.Context, name, text string, lines func(int) int) (connects bool, methods []string, err error) {
	if !strings.Contains(text, "child_process") {
		return false, nil, nil
	}
	find := javaNeeds()
	starters, values := map[string]bool{}, map[string]string{}
	for f, shell := range jsStarters {
		starters[f] = shell
	}
	for _, m := range find.promised.FindAllStringSubmatch(text, 100) {
		starters[m[1]] = jsStarters[m[2]]
	}
	for _, m := range find.value.FindAllStringSubmatch(text, maxCommands) {
		values[m[1]] = m[2] + m[3] + m[4]
	}
	calls := find.call.FindAllStringSubmatchIndex(text, maxCommands)
	// A function whose first parameter is given to a starter is one, too.
	first := map[string]string{}
	for _, m := range append(find.function.FindAllStringSubmatch(text, maxCommands), find.arrow.FindAllStringSubmatch(text, maxCommands)...) {
		if first[m[1]] = m[2]; m[2] == "" {
			first[m[1]] = m[3]
		}
	}
	parameters := map[string]bool{}
	for _, m := range calls {
		shell, ok := starters[group(text, m, 1)]
		if argument := group(text, m, 5); ok && argument != "" {
			for f, p := range first {
				if _, own := starters[f]; p == argument && !own {
					starters[f], parameters[p] = shell, true
				}
			}
		}
	}
	for _, m := range calls {
		shell, ok := starters[group(text, m, 1)]
		before := strings.TrimRight(text[:m[2]], " \t")
		if !ok || strings.HasSuffix(before, "function") {
			continue
		}
		command := group(text, m, 2) + group(text, m, 3) + group(text, m, 4)
		if argument := group(text, m, 5); argument != "" {
			switch {
			case parameters[argument]:
				continue // a step to the calls of the function around it
			case argument == "process.execPath":
				command = "node"
			default:
				command = values[argument]
			}
		}
		r := c.jsCommand(name, lines(m[2]), command, group(text, m, 6), shell)
		if r == nil {
			continue
		}
		connects, methods = connects || r.connects, append(methods, r.methods...)
		if err := c.shellUses(ctx, name, r, nil, nil); err != nil {
			return false, nil, err
		}
	}
	return connects, methods, nil
}

// jsCommand reads a command of child_process; nil where it is noted that it cannot be read.
func (c *check) jsCommand(name string, line int, command, arguments string, shell bool) *shellText {
	command = jsInserted.ReplaceAllString(command, pysource.Unknown)
	p := &pysource.Program{By: "child_process", Line: line, Shell: shell}
	if command != "" {
		p.Words = []string{command}
		for _, a := range strings.Split(arguments, ",") {
			if a = strings.Trim(strings.TrimSpace(a), `'"`); a != "" && !shell {
				p.Words = append(p.Words, a)
			}
		}
	}
	return c.started(name, p)
}
