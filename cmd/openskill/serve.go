package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

func (a *cli) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the skills over HTTP",
		Long: `Serve the skills over HTTP. When ready, it prints its address on standard output, and
calls to copy. SIGTERM or SIGINT stops it: new requests are refused, and calls have 10
seconds to finish; a second signal ends it at once. SIGHUP reloads the settings and the
folders of skills. Changed settings that need a restart are named in the log. Invalid
settings are rejected as a whole.`,
		Example: "  openskill serve --listen 127.0.0.1:8000 --skills ./skills --data ./data",
		Args:    takes(0, 0),
	}
	flags := bindSettings(cmd)
	var install bool
	cmd.Flags().BoolVar(&install, "install-runtimes", false, "install the default Python runtime first, if none is installed")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		noPython := !havePython(s.StateDir)
		if install && noPython {
			if err := a.installDefault(cmd.Context(), s.StateDir); err != nil {
				return err
			}
			noPython = false
		}
		hangups := make(chan os.Signal, 1) // signals that come while one is followed are one
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		var at slog.LevelVar
		at.Set(level(s, slog.LevelInfo))
		log := a.logger(&at)
		warnings(s, log)
		h, err := app.Open(s, &app.Options{Log: log, Mode: app.Serving})
		if told, ok := errors.AsType[*skill.Error](err); ok && told.Code == skill.InvalidArgument {
			return &exitError{exitUsage, told}
		}
		if err != nil {
			return hostFailed(err)
		}
		for _, p := range h.Problems() {
			log.Warn("skill skipped", slog.String("problem", p.String()))
		}
		var unsaid error
		ctx, stop := context.WithCancel(cmd.Context())
		var reloads sync.WaitGroup
		err = h.Serve(ctx, func(addr net.Addr) {
			unsaid = a.announce(h, addr, s.Auth, noPython)
			reloads.Go(func() { a.reloads(ctx, h, flags, hangups, log, &at) })
		})
		stop()
		reloads.Wait()
		if err != nil {
			return hostFailed(err)
		}
		return unsaid
	}
	return cmd
}

// reloads follows signals until ctx ends.
func (a *cli) reloads(ctx context.Context, h *app.Host, flags *settingsFlags, hangups <-chan os.Signal, log *slog.Logger, at *slog.LevelVar) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		next, err := a.load(flags)
		var c *config.Change
		if err == nil {
			c, err = h.Reload(ctx, next)
		}
		if err != nil {
			var told *skill.Error
			message := err.Error()
			if errors.As(err, &told) && told.Message != "" {
				message = told.Message
			}
			log.Error("settings not reloaded", slog.String("problem", skill.CleanText(message, skill.MaxMessage)))
			continue
		}
		at.Set(level(c.Settings, slog.LevelInfo))
		warnings(c.Settings, log)
		log.Info("settings reloaded", slog.Any("changed", c.Taken))
		if len(c.Waiting) > 0 {
			log.Warn("settings wait for a restart", slog.Any("names", c.Waiting))
		}
	}
}

// samples are calls of the skills that come with openSkill.
var samples = []struct {
	id    skill.ID
	input string
}{
	{"echo", `{"text": "hello"}`},
	{"file_search", `{"query": "openSkill", "root_dir": "./data"}`},
	{"calculator", `{"numbers": [10.5, 9.9, 11.2], "ops": ["mean", "max"]}`},
}

// havePython reports whether a Python runtime is installed.
func havePython(stateDir string) bool {
	return slices.ContainsFunc(runtimes.New(stateDir).List(), func(s runtimes.Status) bool { return s.State == runtimes.Installed })
}

// installDefault installs the default Python runtime, and compiles it.
func (a *cli) installDefault(ctx context.Context, stateDir string) error {
	store := runtimes.New(stateDir)
	name := store.Names()[0]
	report, err := a.installRuntime(ctx, store, name, "")
	if err != nil {
		return runtimeFailed(err)
	}
	a.say("openskill: %s (Python %s) is installed", report.Name, report.Version)
	return a.compileAhead(ctx, stateDir, name)
}

// announce prints the line that says that the host is ready, calls to copy of skills that
// are there, and where a browser finds it.
func (a *cli) announce(h *app.Host, addr net.Addr, auth config.Auth, noPython bool) error {
	url := "http://" + addr.String()
	text := fmt.Sprintf("openskill %s listening on %s\n", app.Version, url)
	shown := ""
	if auth == config.AuthRequired {
		shown = ` -H "X-API-Key: $KEY"`
		text += "authentication is required; create a KEY with openskill keys create\n"
	}
	for _, s := range samples {
		if d, err := h.Catalogue().Get(skill.Local(), s.id, ""); err == nil && d.Enabled {
			text += fmt.Sprintf("  curl -s %s/skills/%s:invoke%s -d '{\"input\": %s}'\n", url, s.id, shown, s.input)
		}
	}
	text += fmt.Sprintf("  curl -s %s/agent/chat%s -d '{\"message\": \"echo: hello\"}'\n", url, shown)
	text += fmt.Sprintf("console %s/console, API %s/docs\n", url, url)
	if noPython {
		text += "no Python runtime is installed, so Python skills do not run in the sandbox; install one with openskill serve --install-runtimes\n"
	}
	if h.OnlyRules() {
		text += "no model is configured, so rules answer /agent/chat; set OPENAI_API_KEY, or see openskill doctor\n"
	}
	return a.print("%s", text)
}

// skipped reports problems of the catalogue to a person.
func (a *cli) skipped(h *app.Host) {
	for _, p := range h.Problems() {
		a.say("openskill: skipped: %s", skill.CleanText(p.String(), 1000))
	}
}
