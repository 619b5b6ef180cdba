package main

import (
	"context"
	"log/slog"

	"openskill/host/app"
	"openskill/host/packages"
	"openskill/host/pysource"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// compileModules has packages of Python compiled in the sandbox. What it opens for that, when
// there is a first one, closed closes. Without a runtime they stay source, which it says.
func (a *cli) compileModules(flags *settingsFlags, o *packages.Options) (closed func()) {
	var h *app.Host
	var python *pysource.Analyzer
	open := func() error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		if _, err := runtimes.New(s.StateDir).For(nil, nil); err != nil {
			a.say("openskill: no Python runtime is installed, so packages are kept uncompiled and imported slowly; after openskill runtime install, run openskill packages lock")
			return nil
		}
		if h, err = app.Open(s, &app.Options{Log: a.logger(level(s, slog.LevelError)), Roots: []string{}, AgentRoots: []string{}, Brief: true}); err != nil {
			return err
		}
		r, err := h.Python()
		if err != nil {
			return err
		}
		python = pysource.New(pysource.Options{Runner: r, Dir: app.AnalysisDir(s.StateDir)})
		return nil
	}
	opened := false
	o.Compile = func(ctx context.Context, paths []string, texts [][]byte) (string, [][]byte, error) {
		if !opened {
			if err := open(); err != nil {
				return "", nil, err
			}
			opened = true
		}
		if python == nil {
			return "", nil, nil
		}
		return app.CompileWith(python, skill.Local().Tenant)(ctx, paths, texts)
	}
	return func() {
		if h != nil {
			_ = h.Close()
		}
	}
}
