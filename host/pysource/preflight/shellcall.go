package preflight

import (
	"slices"
	"strings"

	"openskill/host/pysource"
)

// maxCommands bounds what is noted of one text.
const maxCommands = 5000

// call notes a command and those that it starts in turn, as xargs and timeout do.
func (r *shellReader) call(words []string, line int) {
	for len(words) > 0 && len(r.commands) < maxCommands {
		name := words[0]
		if name == "" || strings.HasPrefix(name, pysource.Unknown) && !strings.Contains(name, "/") {
			r.note("", line)
			return
		}
		if base := commandName(name); base != "" {
			name = base
		}
		r.note(name, line)
		words = words[1:]
		switch name {
		case "sudo", "doas", "env", "exec", "command", "builtin", "nohup", "nice", "time", "setsid", "stdbuf", "timeout", "gtimeout", "xargs", "ionice", "chronic", "caffeinate", "watch", "flock":
			if name == "command" && len(words) > 0 && (words[0] == "-v" || words[0] == "-V") {
				return
			}
			words = started(name, words)
			if len(words) == 0 {
				return
			}
			continue
		case "find":
			for i, w := range words {
				if (w == "-exec" || w == "-execdir" || w == "-ok" || w == "-okdir") && i+1 < len(words) {
					r.call(words[i+1:min(i+3, len(words))], line)
				}
			}
		case "sh", "bash", "zsh", "dash":
			r.shell(words, line)
		case "eval":
			r.nested(strings.Join(words, " "), line)
		case "trap":
			if len(words) > 1 && words[0] != "-" && !strings.HasPrefix(words[0], "-") {
				r.nested(words[0], line)
			}
		case ".", "source":
			if len(words) > 0 {
				r.sources = append(r.sources, shellCommand{name: words[0], line: line})
			}
		case "curl", "wget", "http", "https", "xh":
			r.connects = true
			r.request(words)
		case "python", "python3":
			r.connects = true
			if len(words) > 1 && words[0] == "-c" {
				r.inline(words[1], line)
			}
		case "node", "npx", "deno", "bun", "uv", "uvx":
			r.connects = true
		}
		return
	}
}

func (r *shellReader) note(name string, line int) {
	if len(r.commands) < maxCommands {
		r.commands = append(r.commands, shellCommand{name: name, line: line, guarded: r.guards[name] > 0})
	}
}

// started are the words of the command that another one starts.
func started(by string, words []string) []string {
	valued := map[string]string{"xargs": "-I -n -P -d -L -s -E -a", "sudo": "-u -g -p -C -h", "nice": "-n", "env": "-u -C", "timeout": "-k -s", "gtimeout": "-k -s", "stdbuf": "", "ionice": "-c -n -p", "watch": "-n", "flock": "-w", "exec": "-a"}[by]
	for len(words) > 0 {
		w := words[0]
		switch {
		case w == "--":
			return words[1:]
		case strings.HasPrefix(w, "-") && len(w) > 1:
			if words = words[1:]; slices.Contains(strings.Fields(valued), w) && len(words) > 0 {
				words = words[1:]
			}
		case (by == "env" || by == "sudo") && strings.Contains(w, "=") && !strings.Contains(strings.SplitN(w, "=", 2)[0], "/"):
			words = words[1:]
		case by == "timeout" || by == "gtimeout" || by == "flock":
			return words[1:]
		default:
			return words
		}
	}
	return nil
}

// shell reads the text of bash -c; a file is a command.
func (r *shellReader) shell(words []string, line int) {
	for i, w := range words {
		if !strings.HasPrefix(w, "-") {
			if w != "" && !strings.HasPrefix(w, "<") {
				r.note("./"+strings.TrimPrefix(w, "./"), line)
			}
			return
		}
		if strings.HasSuffix(w, "c") && !strings.HasPrefix(w, "--") {
			if i+1 < len(words) {
				r.nested(words[i+1], line)
			}
			return
		}
		if w == "-s" {
			return
		}
	}
}

// nested reads a text within the text. What cannot be read is a command that is computed.
func (r *shellReader) nested(text string, line int) {
	if r.within >= maxWithin || strings.HasPrefix(text, pysource.Unknown) {
		r.note("", line)
		return
	}
	first := r.first
	r.first = line - 1
	r.within++
	if err := r.read(text); err != nil {
		r.note("", line)
	}
	r.within--
	r.first = first
}

// request notes the methods of curl and wget, and addresses without a scheme.
func (r *shellReader) request(words []string) {
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		name, value, _ := strings.Cut(w, "=")
		if value == "" {
			value = next
		}
		switch {
		case w == "-X" || name == "--request" || name == "--method":
			r.method(value)
		case strings.HasPrefix(w, "-X") && len(w) > 2:
			r.method(w[2:])
		case w == "-T" || name == "--upload-file":
			r.method("PUT")
		case w == "-d" || w == "-F" || strings.HasPrefix(name, "--data") || name == "--json" || name == "--form" || name == "--form-string" || strings.HasPrefix(name, "--post-"):
			if !slices.Contains(words, "-G") && !slices.Contains(words, "--get") && !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-X") || strings.HasPrefix(w, "--request") }) {
				r.method("POST")
			}
		}
	}
}

func (r *shellReader) method(m string) {
	if m = strings.ToUpper(m); slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, m) && !slices.Contains(r.methods, m) {
		r.methods = append(r.methods, m)
	}
}
