package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/sdk/skill"
)

// codePrompt runs what a person types, entry by entry: Python in one session, other languages in one workspace.
func (a *cli) codePrompt(ctx context.Context, h *app.Host, s *config.Settings, o *codeFlags) error {
	var in lines
	var interrupts interrupts
	if from, to, typing := a.typing(); !typing {
		in = newPipedLines(ctx, a.stdin)
	} else {
		history := keptLines{}
		if at := keptIn(s); at != "" {
			history.path = strings.TrimSuffix(at, "chat_history") + "code_history"
		}
		typed, err := newTypedLines(ctx, from, to, &history, nil)
		if err != nil {
			return hostFailed(err)
		}
		in = typed
		kept := "Each entry runs in a fresh sandbox with the variables of those before"
		if o.language != "python" {
			kept = "Each entry runs in a fresh sandbox with the files of those before"
		}
		a.say("%s; an empty line ends one of several lines, Ctrl-D the prompt", kept)
		signal.Reset(os.Interrupt) // it ends the entry
		interrupts = make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		defer signal.Reset(os.Interrupt)
	}
	defer in.Close()
	if o.language == "python" && o.session == "" {
		o.session = skill.NewSession
		defer func() { h.EndSession(context.WithoutCancel(ctx), o.session) }()
	} else if o.language != "python" && o.workspace == "" {
		o.workspace = "prompt-" + strings.ToLower(rand.Text())
		defer h.EndWorkspace(context.WithoutCancel(ctx), o.workspace)
	}
	var entry []string
	for {
		prompt := ">>> "
		if len(entry) > 0 {
			prompt = "... "
		}
		line, err := in.Read(prompt, true)
		switch {
		case errors.Is(err, errLongLine):
			return usage("%s", errLongLine)
		case errors.Is(err, errInterrupted):
			entry = nil
			continue
		case err != nil && ctx.Err() != nil:
			return failed(skill.Cancelled, "interrupted")
		case err != nil && len(entry) == 0:
			return nil
		case err == nil:
			if entry = append(entry, line); !ended(o.language, entry) {
				continue
			}
		}
		if code := strings.Join(entry, "\n"); strings.TrimSpace(code) != "" {
			run, done := interrupts.stoppable(ctx)
			failure := a.runEntry(run, h, o, code)
			done()
			if failure != nil {
				return failure
			}
		}
		if entry = nil; err != nil {
			return nil
		}
	}
}

// runEntry runs an entry and prints what came of it. Its error is one of the prompt, not of the code.
func (a *cli) runEntry(ctx context.Context, h *app.Host, o *codeFlags, code string) error {
	input, err := o.input(code)
	if err != nil {
		return err
	}
	r := h.Invoke(ctx, skill.Local(), o.request(input))
	if o.session == skill.NewSession {
		if made := sessionOf(r); made != "" {
			o.session = made
		}
	}
	if r.Success || o.session != "" && r.Error.Code == skill.GuestExit {
		o.files = nil // the session or the workspace has them
	}
	if o.json {
		return a.printJSON(r)
	}
	if err := a.printRun(r, true); err != nil {
		return err
	}
	if r.Error != nil && r.Error.Code != skill.GuestExit {
		a.say("%s: %s", r.Error.Code, r.Error.Message)
	}
	if err := writeArtifacts(o.artifacts, r.Meta.Artifacts); err != nil { // such as a file of an earlier entry, which is kept
		a.say("cannot write artifacts: %v", err)
	}
	return nil
}

// ended reports whether an entry is complete: it has no open bracket or string, and an empty line follows each block of
// Python.
func ended(language string, entry []string) bool {
	text := strings.Join(entry, "\n")
	last := entry[len(entry)-1]
	if strings.HasSuffix(last, `\`) || language != "shell" && open(language, text) {
		return false
	}
	first := strings.TrimRight(entry[0], " \t")
	block := language == "python" && (strings.HasSuffix(first, ":") || strings.HasPrefix(first, "@")) ||
		len(entry) > 1 && slices.ContainsFunc(entry, func(l string) bool { return strings.HasSuffix(strings.TrimRight(l, " \t"), ":") })
	return !block || language != "python" || strings.TrimSpace(last) == ""
}

// open reports whether a text of Python or JavaScript ends within brackets or quotes.
func open(language, text string) bool {
	quotes, comment := []string{`"""`, `'''`, `"`, `'`}, "#"
	if language != "python" {
		quotes, comment = []string{"`", `"`, `'`}, "//"
	}
	depth, quote := 0, ""
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case quote != "":
			switch {
			case rest[0] == '\\':
				i++
			case strings.HasPrefix(rest, quote):
				i += len(quote) - 1
				quote = ""
			case rest[0] == '\n' && len(quote) == 1 && quote != "`": // it is an error, which the language tells
				quote = ""
			}
		case strings.HasPrefix(rest, comment):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				i += end
			} else {
				i = len(text)
			}
		default:
			if at := slices.IndexFunc(quotes, func(q string) bool { return strings.HasPrefix(rest, q) }); at >= 0 {
				quote = quotes[at]
				i += len(quote) - 1
			}
			switch rest[0] {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			}
		}
	}
	return depth > 0 || len(quote) == 3 || quote == "`"
}

// sessionOf returns the session of a result; "": it names none.
func sessionOf(r *skill.Result) string {
	var made struct{ Session string }
	said := []byte(r.Data)
	if r.Error != nil {
		said, _ = json.Marshal(r.Error.Details) // of a program that ended with an exception
	}
	_ = json.Unmarshal(said, &made) // data of this host
	return made.Session
}
