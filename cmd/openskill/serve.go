package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"openskill/host"
	"openskill/sdk/skill"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serves the skills over HTTP until it is told to stop",
		Long: `Serves the skills over HTTP. When it is ready it prints one line with the address
on standard output, and calls to copy. SIGTERM or SIGINT stops it: it accepts
nothing new and lets calls finish for 10 seconds; a second signal ends it at once.`,
		Example: "  openskill serve --listen 127.0.0.1:8000 --skills ./skills --data ./data",
		Args:    takes(0, 0),
	}
	flags := bindSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		log := a.logger(level(s, slog.LevelInfo))
		warnings(s, log)
		h, err := host.Open(s, &host.Options{Log: log, Uploads: true})
		var told *skill.Error
		if errors.As(err, &told) && told.Code == skill.InvalidArgument {
			return &exitError{exitUsage, told}
		}
		if err != nil {
			return hostFailed(err)
		}
		for _, p := range h.Problems() {
			log.Warn("skill skipped", slog.String("problem", p.String()))
		}
		var unsaid error
		err = h.Serve(cmd.Context(), func(addr net.Addr) { unsaid = a.announce(h, addr) })
		if err != nil {
			return hostFailed(err)
		}
		return unsaid
	}
	return cmd
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

// announce prints the line that says that the host is ready, and calls to copy
// of skills that are there.
func (a *app) announce(h *host.Host, addr net.Addr) error {
	url := "http://" + addr.String()
	text := fmt.Sprintf("openskill %s listening on %s\n", host.Version, url)
	for _, s := range samples {
		if d, err := h.Catalogue().Get(skill.Local(), s.id, ""); err == nil && d.Enabled {
			text += fmt.Sprintf("  curl -s %s/skills/%s:invoke -d '{\"input\": %s}'\n", url, s.id, s.input)
		}
	}
	return a.print("%s", text)
}

// skipped reports problems of the catalogue to a person.
func (a *app) skipped(h *host.Host) {
	for _, p := range h.Problems() {
		a.say("openskill: skipped: %s", skill.CleanText(p.String(), 1000))
	}
}
