package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/sdk/skill"
)

// The exit codes.
const (
	exitFailed = 1 // the skill or the check failed
	exitUsage  = 2 // wrong usage or settings
	exitHost   = 3 // the host failed
)

// cli is what the commands share: where they read and write.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string // as os.Environ gives it
}

// exitError ends a command with an exit code. err, which may be nil, is printed.
type exitError struct {
	exit int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.exit)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit ends a command with a code and nothing more to say.
func exit(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{exit: code}
}

// usage is a wrong command line or setting.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, &skill.Error{Op: "openskill", Code: skill.InvalidArgument, Message: fmt.Sprintf(format, args...)}}
}

// hostFailed is what the operator must mend: the whole cause is told.
func hostFailed(err error) error {
	return &exitError{exitHost, &skill.Error{Op: "openskill", Code: skill.Internal, Message: err.Error()}}
}

// failed is a run or check that failed with a code.
func failed(code skill.Code, format string, args ...any) error {
	return &exitError{exitFailed, &skill.Error{Op: "openskill", Code: code, Message: fmt.Sprintf(format, args...)}}
}

func (a *cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "openskill",
		Short: "Run AI agent skills written by strangers, safely and fast",
		Long: `openskill runs skills for AI agents. Each call gets a fresh WebAssembly sandbox with
enforced limits, and is recorded.

Results go to standard output, progress and logs to standard error. Exit codes:
0 success, 1 the skill or the check failed, 2 wrong usage or settings, 3 the host
failed.`,
		Example: `  openskill serve
  openskill run echo --set text=hello
  openskill module run program.wasm --timeout 2s -- an argument`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	group(root)
	root.Version = app.Version // for --version
	root.SetVersionTemplate("openskill {{.Version}}\n")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		a.serveCommand(), a.runCommand(), a.codeCommand(), a.scriptCommand(), a.moduleCommand(), a.skillsCommand(), a.skillCommand(),
		a.doctorCommand(), a.versionCommand(), a.labCommand("bench", "Measure this machine: execution, starts, skills, HTTP", "bench --filter image"), a.runtimeCommand(), a.selftestCommand(), a.mcpCommand(),
		a.packagesCommand(), a.approvalsCommand(), a.toolsCommand(), a.capabilityCommand(), a.agentSkillsCommand(), a.keysCommand(), a.dbCommand(),
		a.auditCommand(), a.replayCommand(), a.chatCommand(), a.labCommand("fakellm", "Serve a scripted model, for demonstrations and tests without a network", "fakellm"), a.backupCommand(), a.restoreCommand(),
		a.configCommand(), a.completionCommand(), a.manCommand(),
	)
	return root
}

// helpCommand is cobra's own but that it refuses a command that there is not.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND…]",
		Short:   "Show help for a command",
		Example: "  openskill help module run",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage("unknown command %s", quote(strings.Join(args, " ")))
			}
			return found.Help()
		},
	}
}

// many is any number of arguments.
const many = math.MaxInt

// takes checks how many arguments a command is given, and names those that it wants.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		_, wants, _ := strings.Cut(cmd.Use, " ")
		switch n := len(args); {
		case n < least:
			return usage("%s needs %s", cmd.CommandPath(), wants)
		case n > most && most == 0:
			return usage("%s takes no arguments; remove %s", cmd.CommandPath(), quote(args[0]))
		case n > most:
			return usage("%s takes only %s; remove %s", cmd.CommandPath(), wants, quote(args[most]))
		}
		return nil
	}
}

// group makes a command that only has subcommands say so when there is none, or
// one that it does not know.
func group(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("%s needs a command: %s", cmd.CommandPath(), strings.Join(subcommands(cmd), ", "))
		}
		cmd.SuggestionsMinimumDistance = 2
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return usage("%s has no command %s; did you mean %s?", cmd.CommandPath(), quote(args[0]), strings.Join(near, " or "))
		}
		return usage("%s has no command %s; use %s", cmd.CommandPath(), quote(args[0]), strings.Join(subcommands(cmd), ", "))
	}
}

func subcommands(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			names = append(names, c.Name())
		}
	}
	return names
}

// report prints an error and gives the exit code.
func (a *cli) report(cmd *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	code := exitUsage // what cobra itself finds wrong
	if e, ok := errors.AsType[*exitError](err); ok {
		if code = e.exit; e.err == nil {
			return code
		}
	}
	var se *skill.Error
	message := err.Error()
	if errors.As(err, &se) {
		message = se.Message
	}
	if code == exitUsage {
		if cmd.Name() == "help" {
			cmd = cmd.Root()
		}
		message += "; see " + cmd.CommandPath() + " --help"
	}
	if passesThrough(cmd) {
		c := skill.InvalidArgument
		if se != nil {
			c = se.Code
		}
		a.errorLine(c, message)
		return code
	}
	for i, line := range strings.Split(message, "\n") {
		prefix := "openskill: "
		if i > 0 {
			prefix = "           "
		}
		a.say("%s%s", prefix, skill.CleanText(line, 4096))
	}
	return code
}

// errorLine is the last line on standard error of a command that runs guests.
func (a *cli) errorLine(code skill.Code, message string) {
	line := struct {
		Error struct {
			Code    skill.Code `json:"code"`
			Message string     `json:"message"`
		} `json:"error"`
	}{}
	line.Error.Code, line.Error.Message = code, skill.CleanText(message, skill.MaxMessage)
	_ = writeJSON(a.stderr, line) // there is nowhere else to say it
}

// say writes a line for a person to standard error.
func (a *cli) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...) // there is nowhere else to say it
}

// print writes results; a standard output that cannot be written is the host's failure.
func (a *cli) print(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
		return hostFailed(err)
	}
	return nil
}

// printJSON writes one line of JSON to standard output.
func (a *cli) printJSON(v any) error {
	if err := writeJSON(a.stdout, v); err != nil {
		return hostFailed(err)
	}
	return nil
}

// listOf is how --json prints a list.
type listOf[T any] struct {
	Data []T `json:"data"`
}

// everyPage gives all pages of a list: what it has on each, from the one after a cursor.
func everyPage[T any](page func(cursor string) ([]T, string, error)) ([]T, error) {
	all := []T{}
	for cursor := ""; ; {
		list, next, err := page(cursor)
		all = append(all, list...)
		if err != nil || next == "" {
			return all, err
		}
		cursor = next
	}
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// logger writes JSON lines to standard error.
func (a *cli) logger(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}

// quote shows a word of the command line.
func quote(s string) string { return `"` + skill.CleanText(s, 80) + `"` }
