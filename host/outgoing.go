package host

import (
	"log/slog"

	"openskill/host/config"
	"openskill/host/egress"
	"openskill/sdk/skill"
)

// outgoing makes the requests of guests; nil where the settings allow none, so that
// nothing in the process could make one.
func outgoing(s *config.Settings, log *slog.Logger) skill.Outgoing {
	if !s.Allowed().HTTP() {
		return nil
	}
	return egress.New(&egress.Options{Log: log})
}
