package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"openskill/host/app/config"
	"openskill/sdk/skill"
)

// The exit codes, as those of openskill.
const (
	exitFailed = 1 // the measurement failed
	exitUsage  = 2 // wrong usage or settings
	exitHost   = 3 // the host failed
)

// cli is what the commands share: where they read and write.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string // as os.Environ returns it
}

// exitError ends a command with an exit code.
type exitError struct {
	exit int
	err  error
}

// Error implements error.
func (e *exitError) Error() string {
	if coded := (*skill.Error)(nil); errors.As(e.err, &coded) {
		return coded.Message
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// usage is a wrong command line or setting.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func hostFailed(err error) error { return &exitError{exitHost, err} }

// failed is a run that failed; its code is for those who read the code of openskill.
func failed(_ skill.Code, format string, args ...any) error {
	return &exitError{exitFailed, fmt.Errorf(format, args...)}
}

func (a *cli) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
}

func (a *cli) print(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
		return hostFailed(err)
	}
	return nil
}

func (a *cli) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return hostFailed(err)
	}
	return nil
}

func (a *cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "openskill-lab",
		Short:         "Measure openskill, and serve a scripted model or a registry for tests",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddCommand(a.benchCommand(), a.fakeLLMCommand(), a.registryCommand())
	return root
}

// takes checks the number of arguments of a command.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		_, wants, _ := strings.Cut(cmd.Use, " ")
		switch n := len(args); {
		case n < least:
			return usage("%s needs %s", cmd.CommandPath(), wants)
		case n > most:
			return usage("%s: unexpected argument %s", cmd.CommandPath(), quote(args[most]))
		}
		return nil
	}
}

// settingsFlags are the flags of a command that override settings.
type settingsFlags struct {
	cmd  *cobra.Command
	file string
	rows []config.Setting
}

// bindSettings adds the flags of these settings, or of all, and --config.
func bindSettings(cmd *cobra.Command, names ...string) *settingsFlags {
	f := &settingsFlags{cmd: cmd}
	for _, s := range config.Table() {
		if s.Flag == "" || len(names) > 0 && !slices.Contains(names, s.Flag) {
			continue
		}
		f.rows = append(f.rows, s)
		cmd.Flags().String(s.Flag, "", s.Doc+" ["+s.Env+"]")
	}
	cmd.Flags().StringVar(&f.file, "config", "", "`FILE` of settings; default: openskill.yaml")
	return f
}

// load reads the settings.
func (a *cli) load(f *settingsFlags) (*config.Settings, error) {
	flags := map[string]string{}
	for _, s := range f.rows {
		if g := f.cmd.Flags().Lookup(s.Flag); g.Changed {
			flags[s.Flag] = g.Value.String()
		}
	}
	s, err := config.Load(config.Sources{Flags: flags, Environ: a.environ, File: f.file})
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return s, nil
}

func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.AppendHeader(table.Row(header))
	return t
}

func quote(s string) string { return `"` + skill.CleanText(s, 80) + `"` }

func plain(err error) error {
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
