package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/app/config"
	"openskill/internal/cliflag"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// chatFlags are the flags of chat beside the settings.
type chatFlags struct {
	remoteFlags

	provider, model, conversation string
	asJSON                        bool
}

func (a *cli) chatCommand() *cobra.Command {
	var o chatFlags
	cmd := &cobra.Command{
		Use:   "chat [MESSAGE…]",
		Short: "Chat with a model that can call the skills",
		Long: `Chat with a model that can call the skills. Text and calls are shown as they arrive,
Ctrl-C stops a turn, /help lists commands. With a MESSAGE it is one turn. If standard
input is not a terminal, each line is a message; answers go to standard output, tool
calls to standard error.

The host is the one at --remote, or at OPENSKILL_HTTP_BASE_URL in the environment; else,
or with --skills and other settings, it runs in this process. Its settings select the
model (OPENAI_API_KEY, DASHSCOPE_API_KEY, ANTHROPIC_API_KEY and others); without one,
rules choose a skill by the words of a message.

With --json each turn prints one JSON object: an answer as of POST /agent/chat, or
{"error": …}. The exit code is 1 if a turn failed or was not completed, and 3 if the
host cannot be reached.`,
		Example: `  openskill chat
  openskill chat 'what is the mean of 3, 5 and 10?'
  openskill chat --remote https://skills.example.com --key-env MY_KEY
  openskill chat --json < questions.txt`,
	}
	flags := bindSettings(cmd, "skills", "agent-skills", "script-approval", "cli-dir", "data", "state", "python", "debug")
	f := cmd.Flags()
	o.bind(cmd, "to use instead of opening one")
	f.Var(cliflag.Text(&o.provider, "NAME"), "provider", "provider of the model, such as openai; default: the host's choice")
	f.Var(cliflag.Text(&o.model, "NAME"), "model", "model; default: the provider's own")
	f.Var(cliflag.Text(&o.conversation, "ID"), "conversation", "id of the conversation to continue")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object per turn")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.chat(cmd.Context(), flags, &o, args)
	}
	return cmd
}

func (a *cli) chat(ctx context.Context, flags *settingsFlags, o *chatFlags, args []string) error {
	message := strings.TrimSpace(strings.Join(args, " "))
	if len(args) > 0 && message == "" {
		return usage("the message is empty")
	}
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	c := &chatting{provider: o.provider, model: o.model, conversation: o.conversation}
	if o.remote == "" && localFlag(flags) == "" {
		o.remote = a.environment(client.BaseURLVariable)
	}
	if o.remote != "" {
		if c.api, err = a.remote(flags, o); err != nil {
			return err
		}
	} else {
		if o.keyEnv != "" {
			return usage("--key-env needs --remote: a host in this process needs no key")
		}
		h, api, err := a.openLocal(ctx, s, message == "")
		if err != nil {
			return err
		}
		defer h.close() // everything is answered; the process ends
		c.api, c.local, c.onlyRules = api, true, o.provider == "" && h.OnlyRules()
	}
	in, out, typed := a.typing()
	c.screen = &screen{answers: a.stdout, notes: a.stderr, silent: o.asJSON, live: onTerminal(a.stdout) && !o.asJSON}
	if c.screen.live && (typed || onTerminal(a.stderr)) { // one terminal, whose lines are ours alone
		c.screen.notes, c.screen.redraws, c.screen.color = a.stdout, true, a.environment("NO_COLOR") == ""
	}
	if message == "" && typed && !o.asJSON {
		return a.converse(ctx, c, s, in, out, o.remote)
	}
	if c.onlyRules {
		c.tellRules()
	}
	if message != "" {
		return a.oneTurn(ctx, c, o, message)
	}
	return a.everyLine(ctx, c, o)
}

// localFlag returns the first flag set that configures a host in this process, or "".
func localFlag(flags *settingsFlags) string {
	for _, row := range flags.rows {
		if g := flags.cmd.Flags().Lookup(row.Flag); g.Changed && row.Flag != "state" && row.Flag != "debug" {
			return row.Flag
		}
	}
	return ""
}

// remote is the host that a flag names, or the environment.
func (a *cli) remote(flags *settingsFlags, o *chatFlags) (*client.Client, error) {
	if own := localFlag(flags); own != "" {
		return nil, usage("--%s does not apply with --remote: that host has its own settings", own)
	}
	return o.client(a, chatAgent)
}

// environment gives a variable, "" if it is not set.
func (a *cli) environment(name string) string {
	for _, kv := range a.environ {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// onTerminal reports whether what is written there goes to a terminal.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && terminal(f) && !isNull(f)
}

// typing reports whether a person types at a terminal and reads there.
func (a *cli) typing() (in, out *os.File, yes bool) {
	in, _ = a.stdin.(*os.File)
	out, _ = a.stdout.(*os.File)
	return in, out, in != nil && terminal(in) && !isNull(in) && onTerminal(a.stdout)
}

// isNull reports whether a file is the device that holds nothing, which looks like a
// terminal otherwise.
func isNull(f *os.File) bool {
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && os.SameFile(null, info)
}

// oneTurn is a message of the command line.
func (a *cli) oneTurn(ctx context.Context, c *chatting, o *chatFlags, message string) error {
	answer, err := c.say(ctx, message)
	if o.asJSON {
		if err := a.turnJSON(answer, err); err != nil {
			return err
		}
	}
	return turnExit(answer, err)
}

// everyLine takes each line of standard input for a message.
func (a *cli) everyLine(ctx context.Context, c *chatting, o *chatFlags) error {
	in := newPipedLines(ctx, a.stdin)
	var worst error
	for {
		line, err := in.Read("", false)
		switch {
		case errors.Is(err, errLongLine):
			return usage("%s", errLongLine)
		case err != nil && ctx.Err() != nil:
			return failed(skill.Cancelled, "interrupted")
		case err != nil:
			return worst
		case strings.TrimSpace(line) == "":
			continue
		}
		answer, err := c.say(ctx, line)
		if o.asJSON {
			if err := a.turnJSON(answer, err); err != nil {
				return err
			}
		}
		if err := turnExit(answer, err); err != nil {
			var e *exitError
			if worst = err; errors.As(err, &e) && e.exit != exitFailed {
				return err // the next one would fare no better
			}
		}
	}
}

// turnJSON prints a turn as one line.
func (a *cli) turnJSON(answer *client.ChatAnswer, err error) error {
	var v any = answer
	if err != nil {
		v = failureOf(err)
	}
	line, err := cleanJSON(v)
	if err != nil {
		return hostFailed(err)
	}
	return a.print("%s", line)
}

// turnExit is how a command ends after a turn. What went wrong was shown already, but
// for what the person who called must mend.
func turnExit(answer *client.ChatAnswer, err error) error {
	switch refused, ok := errors.AsType[*client.Error](err); {
	case err == nil && answer.StopReason == client.Completed:
		return nil
	case err == nil, errors.Is(err, errStopped):
		return exit(exitFailed)
	case ok && refused.Status == skill.Unauthorized.Status():
		return usage("authentication required: name the environment variable with your key by --key-env")
	case refused != nil:
		return exit(exitFailed)
	}
	return exit(exitHost)
}

// keptIn is the file of what was typed, "" where there is no state folder: a chat with
// another host does not make one.
func keptIn(s *config.Settings) string {
	if info, err := os.Stat(s.StateDir); err != nil || !info.IsDir() {
		return ""
	}
	return filepath.Join(s.StateDir, "chat_history")
}

// converse is a chat with a person at a terminal. It succeeds, whatever became of turns.
func (a *cli) converse(ctx context.Context, c *chatting, s *config.Settings, in, out *os.File, remote string) error {
	typed, err := newTypedLines(ctx, in, out, &keptLines{keptIn(s)}, commandNames())
	if err != nil {
		return hostFailed(err)
	}
	defer typed.Close()
	c.screen.width = typed.width
	// The program's own way with this signal is to end; here it is the turn that ends.
	// Nothing else listens to it while a line is typed: then it is a character.
	signal.Reset(os.Interrupt)
	c.interrupts = make(chan os.Signal, 1)
	signal.Notify(c.interrupts, os.Interrupt)
	defer signal.Reset(os.Interrupt) // whoever is in a hurry now is not held up

	at, again := "", "openskill chat"
	if remote != "" {
		at, again = " with "+remote, again+" --remote "+remote
	}
	c.screen.note(dimStyle, "%s", oneLine("openskill chat"+at+"; /help lists commands, Ctrl-D leaves", c.screen.room()))
	if c.onlyRules {
		c.tellRules()
	}
	if c.conversation != "" {
		if err := c.goOn(ctx, c.conversation); err != nil {
			c.screen.failed(err)
			return turnExit(nil, err)
		}
	}
	if err := c.prompts(ctx, typed); err != nil {
		return hostFailed(err)
	}
	if c.conversation != "" && ctx.Err() == nil {
		c.screen.note(dimStyle, "%s --conversation %s continues this conversation", oneLine(again, 0), oneLine(c.conversation, 64))
	}
	return nil
}

// prompts asks for lines and does what they say, until the person leaves. The error is
// one of the screen.
func (c *chatting) prompts(ctx context.Context, in lines) error {
	interrupted := false
	for c.screen.failure == nil {
		prompt, asked := c.screen.styled("1;36", ">")+" ", len(c.pending) > 0
		if asked {
			prompt = "approve? [y/n] "
			in.Forget() // nobody can have meant a question that was not there yet
		}
		line, err := readWhole(in, prompt, !asked)
		switch {
		case errors.Is(err, errInterrupted) && interrupted:
			return nil
		case errors.Is(err, errInterrupted):
			interrupted = true
			c.screen.note(dimStyle, "  Ctrl-C again leaves, as Ctrl-D does")
			continue
		case err != nil:
			return nil
		}
		interrupted = false
		yes, decided := yesOrNo(line)
		switch {
		case strings.TrimSpace(line) == "":
		case asked && decided:
			_, _ = c.decide(ctx, c.pending[0].ApprovalID, yes) // it is shown
		case line[0] == '/':
			if c.command(ctx, line) {
				return nil
			}
		default:
			_, _ = c.say(ctx, strings.TrimSpace(line)) // the same
		}
	}
	return c.screen.failure
}

// readWhole reads a line, and those that go on with it behind a backslash.
func readWhole(in lines, prompt string, keep bool) (string, error) {
	whole := ""
	for {
		line, err := in.Read(prompt, keep)
		if err != nil {
			return whole + line, err
		}
		if !strings.HasSuffix(line, `\`) {
			return whole + line, nil
		}
		whole += strings.TrimSuffix(line, `\`) + "\n"
		prompt = "… "
	}
}
