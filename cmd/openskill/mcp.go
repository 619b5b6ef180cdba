package main

import (
	"context"
	"log/slog"
	"path"
	"sync"

	"github.com/spf13/cobra"

	"openskill/host/agent/tools"
	"openskill/host/app"
	"openskill/host/mcp"
	"openskill/sdk/skill"
)

func (a *cli) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the skills over MCP on standard input and output",
		Long: `Serve the skills to one MCP client over standard input and output, as JSON lines; MCP
clients start it themselves. Logs go to standard error. The exit code is 0 when the
input ends and every request is answered, and on SIGTERM, which cancels running
requests. openskill serve offers the same over HTTP under /mcp.`,
		Example: `  openskill mcp --skills ./skills --data ./data
  openskill mcp --tools code`,
		Args: takes(0, 0),
	}
	flags := bindSettings(cmd, "skills", "agent-skills", "script-approval", "cli-dir", "data", "state", "python", "debug")
	given := cmd.Flags().String("tools", string(tools.FormAll), "tools of the client: all (every skill), code (search_skills and run_code), or both")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.serveMCP(cmd.Context(), flags, *given) }
	return cmd
}

func (a *cli) serveMCP(ctx context.Context, flags *settingsFlags, given string) error {
	form, err := tools.ParseForm(given, tools.FormAll)
	if err != nil {
		return usage("--tools must be all, code or both")
	}
	s, err := a.load(flags)
	if err != nil {
		return err
	}
	log := a.logger(level(s, slog.LevelError))
	h, err := app.Open(s, &app.Options{Log: log}) // nothing to wait for
	if err != nil {
		return hostFailed(err)
	}
	defer h.Close() // everything is answered; the process ends
	a.skipped(h)
	m, err := mcp.New(mcp.Options{ // each call has its own context
		Door: h, Catalogue: h.Catalogue(), AgentSkills: h.AgentSkills(), Search: h.Search, Tools: form, Artifact: h.Artifact, Tasks: h.Tasks(), Approvals: h.Approvals(),
		Logger: log, Version: app.Version, BodyLimit: s.MaxBody(),
	})
	if err != nil {
		return hostFailed(err)
	}
	defer m.Close()
	warming, cool := context.WithCancel(ctx)
	var warm sync.WaitGroup
	warm.Go(func() { prepareAll(warming, h) })
	warm.Go(func() { h.KeepUp(warming) })
	warm.Go(func() { h.TendTasks(warming) })
	err = m.ServeStdio(ctx, skill.Local(), a.stdin, a.stdout)
	cool()
	warm.Wait()
	if err != nil {
		return hostFailed(err)
	}
	return nil
}

// prepareAll gets skills ready one after the other, so that calls keep the processors.
func prepareAll(ctx context.Context, h *app.Host) {
	for cursor, more := "", true; more && ctx.Err() == nil; more = cursor != "" {
		page, next, err := h.Catalogue().List(skill.Local(), cursor, 0)
		if err != nil {
			break
		}
		for i := 0; i < len(page) && ctx.Err() == nil; i++ {
			h.Prepare(ctx, page[i].ID)
		}
		cursor = next
	}
	list, err := h.AgentSkills().List(ctx, skill.Local())
	if err != nil {
		return
	}
	known := map[string]bool{} // runtimes, which are all that a script needs
	for i := range list {
		for _, f := range list[i].Scripts {
			if kind := path.Ext(f.Name); !known[kind] && ctx.Err() == nil {
				known[kind] = true
				h.PrepareScript(ctx, list[i].Name, f.Name)
			}
		}
	}
}
