package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"openskill/host/app/config"
	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// Reload takes over what can change of settings while the host runs, and reads the
// folders of skills, the trust policy and the prices again. All of it holds, or after an
// error nothing: everything that can fail is done before anything changes. Calls under
// way end as they began. It may be called at any time; one call waits for the other.
func (h *Host) Reload(ctx context.Context, next *config.Settings) (*config.Change, error) {
	h.reloading.Lock()
	defer h.reloading.Unlock()
	c, err := h.live.Load().Change(next)
	if err != nil {
		return nil, err
	}
	s := c.Settings
	reprice, err := h.models.Reprice(s.Prices())
	if err != nil {
		return nil, fmt.Errorf("OPENSKILL_AGENT_PRICES: %w", err)
	}
	var from *pulls
	if h.uploads != nil {
		if from, err = openPulls(s, h.uploads.admission); err != nil {
			return nil, err
		}
	}
	own, err := h.readAgain(s)
	if err != nil {
		from.close()
		return nil, err
	}
	reread, err := h.skills.Reread(ctx, own)
	if err != nil {
		from.close()
		return nil, err
	}
	change := records.Change{Action: "settings.reload", Subject: "settings", Details: map[string]string{"taken": strings.Join(c.Taken, " "), "waiting": strings.Join(c.Waiting, " ")}}
	if err := records.Around(ctx, records.NewStore(h.kept.db), skill.Local(), change, func() error { return nil }); err != nil {
		from.close()
		return nil, err
	}
	if err := h.kept.quotas.Change(quotaLimits(s)); err != nil { // of limits that are in range
		from.close()
		return nil, err
	}
	h.rates.Set(s.RateRequests)
	h.door.Admit(callBounds(s))
	h.door.Allow(s.Allowed())
	reprice()
	reread()
	if h.uploads != nil {
		h.uploads.pulls.Swap(from).close() // what it is fetching is fetched
	}
	h.live.Store(s)
	for _, p := range own.Problems() {
		h.log.Warn("skill skipped", slog.String("problem", p.String()))
	}
	if err := h.skills.Refresh(ctx); err != nil { // what others have changed meanwhile; the next change brings it too
		h.log.Warn("cannot read the definitions; keeping the previous ones", slog.String("error", err.Error()))
	}
	return c, nil
}

// readAgain reads the folders of skills. One that was there and is gone stops it: skills
// do not end because a folder is moved.
func (h *Host) readAgain(s *config.Settings) (*manifest.Registry, error) {
	for _, r := range h.roots {
		if _, err := os.ReadDir(r.Path); err != nil {
			return nil, &skill.Error{Op: "host.Reload", Code: skill.InvalidArgument, Subject: "OPENSKILL_SKILLS_DIR", Err: err, Message: "cannot read the folder of skills: " + plainly(err)}
		}
	}
	return manifest.Open(readOptions(s, h.given, h.schemas))
}

func plainly(err error) string {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
