package host

import (
	"openskill/host/config"
	"openskill/plugins/cli"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// runners is everything that can execute code on this host.
func runners(_ *wasm.Engine, s *config.Settings, d state) []skill.Runner {
	return []skill.Runner{
		cli.New(&cli.Options{Python: s.Python, TempDir: d.temp}),
	}
}
