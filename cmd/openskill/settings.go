package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// settingsFlags are the flags of a command that override settings.
type settingsFlags struct {
	cmd  *cobra.Command
	file string
	rows []config.Setting
	old  []string // flags that are read and not shown
}

// bindSettings gives a command the flags of these settings, or of all of them if
// none is named, and --config.
func bindSettings(cmd *cobra.Command, names ...string) *settingsFlags {
	f := &settingsFlags{cmd: cmd}
	if len(names) == 0 {
		f.old = config.OldFlags()
		for _, name := range f.old {
			cmd.Flags().String(name, "", "")
			cmd.Flags().Lookup(name).Hidden = true
		}
	}
	for _, s := range config.Table() {
		if s.Flag == "" || len(names) > 0 && !slices.Contains(names, s.Flag) { // a secret is no flag
			continue
		}
		f.rows = append(f.rows, s)
		doc := s.Brief
		if s.Default != "" {
			doc += "; default " + s.Default
		}
		cmd.Flags().Var(cliflag.Text(new(string), valueName(s)), s.Flag, doc+" ["+s.Env+"]")
		if s.Flag == "debug" {
			cmd.Flags().Lookup(s.Flag).NoOptDefVal = "1"
		}
	}
	cmd.Flags().Var(cliflag.Text(&f.file, "FILE"), "config", "settings file; default: openskill.yaml, if it exists")
	return f
}

// valueName is the value of a setting's flag in --help.
func valueName(s config.Setting) string {
	switch s.Flag {
	case "listen":
		return "ADDRESS"
	case "skills", "cli-dir", "data", "state":
		return "DIR"
	case "python", "auth", "agent-provider":
		return "NAME"
	case "http-base-url":
		return "URL"
	case "agent-models":
		return "PROVIDER:MODEL"
	case "timeout-ms", "memory-mb", "fuel", "output-kb", "scratch-mb":
		return "N[/MAX]"
	case "rate", "concurrency", "daily", "retention-days", "storage-mb", "uploads", "agent-limits":
		return "NAME:N,..."
	case "debug":
		return "0|1"
	case "trust-policy":
		return "FILE"
	case "pull-hosts":
		return "HOSTS"
	case "http-allow", "env-allow", "data-allow", "agent-prices":
		return "ENTRIES"
	}
	if strings.HasPrefix(s.Accepts, "a whole number") || strings.HasPrefix(s.Accepts, "a number") {
		return "N"
	}
	return "VALUE"
}

// load reads the settings, those flags first that were given.
func (a *cli) load(f *settingsFlags) (*config.Settings, error) {
	flags := map[string]string{}
	for _, s := range f.rows {
		if g := f.cmd.Flags().Lookup(s.Flag); g.Changed {
			if g.Value.String() == "" {
				return nil, usage("--%s is empty; accepted: %s", s.Flag, s.Accepts)
			}
			flags[s.Flag] = g.Value.String()
		}
	}
	for _, name := range f.old {
		if g := f.cmd.Flags().Lookup(name); g.Changed {
			flags[name] = g.Value.String()
		}
	}
	s, err := config.Load(config.Sources{Flags: flags, Environ: a.environ, File: f.file})
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return s, nil
}

// warnings tells of settings that nothing reads: perhaps they are misspelt.
func warnings(s *config.Settings, log *slog.Logger) {
	for _, name := range s.Unknown() {
		log.Warn("unknown setting, ignored", slog.String("name", skill.CleanText(name, 200)))
	}
	for _, r := range s.Renamed() {
		if r.Now == "" {
			log.Warn("setting is gone, ignored", slog.String("name", r.Old), slog.String("where", skill.CleanText(r.Where, 200)), slog.String("holds", r.Why))
			continue
		}
		log.Warn("setting has a new name; the old one is read for one release", slog.String("name", r.Old), slog.String("where", skill.CleanText(r.Where, 200)), slog.String("use", skill.CleanText(r.Now, 200)))
	}
	for _, w := range app.Warnings(s) {
		log.Warn("a setting weakens a protection", slog.String("name", w.Name), slog.String("detail", w.Detail))
	}
}

func level(s *config.Settings, normal slog.Level) slog.Level {
	if s.Debug {
		return slog.LevelDebug
	}
	return normal
}
