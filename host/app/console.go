package app

import (
	"slices"
	"time"

	"openskill/host/api"
	"openskill/host/app/config"
	"openskill/host/console"
	"openskill/host/dispatch"
	"openskill/host/identity"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// lately is what people who look at this host are shown of calls.
type lately struct {
	window *records.Window
	tail   *records.Tail
}

// openLately has the door tell of calls.
func (h *Host) openLately() error {
	h.lately = lately{records.NewWindow(records.WindowOptions{}), records.NewTail(h.alone)}
	h.ended = append(h.ended, func(e *dispatch.Ended) {
		c := &records.EndedCall{
			ID: e.Result.Meta.ExecutionID, Tenant: e.Principal.Tenant, Principal: e.Principal.ID, Kind: string(e.Principal.Type),
			Version: e.Result.Meta.Version, Ended: e.Began.Add(e.Took), Took: e.Took,
			Fuel: e.Result.Meta.FuelUsed, Memory: e.Result.Meta.MemoryPeakBytes,
		}
		if e.Known {
			c.Skill = string(e.Result.SkillID)
		}
		if e.Result.Error != nil {
			c.Code = string(e.Result.Error.Code)
		}
		h.lately.window.Add(c)
		h.lately.tail.Add(c)
	})
	return nil
}

// console makes the console of an edge.
func (h *Host) console(o *api.Options) func(api.Ask) (api.Console, error) {
	out := console.Options{
		DB: h.kept.db, Callers: h.kept.callers, Operator: skill.Local(), Recent: h.lately.window, Tail: h.lately.tail,
		Settings: h.shownSettings, Workers: h.Workers, Chain: h.chain, Reads: o.Reads, Origins: o.Origins, Version: Version, Logger: h.log,
		Now: h.kept.log.DatabaseTime,
	}
	if out.Callers != nil {
		out.Keys = func(by skill.Principal) *identity.Keys { return ManageKeys(h.kept.db, by) }
		out.Provider, out.PublicURL = h.provider(), h.settings.PublicURL()
	}
	return func(ask api.Ask) (api.Console, error) {
		out.API = ask
		return console.New(out)
	}
}

// shownSettings are the settings as they are in force, without secrets.
func (h *Host) shownSettings() []console.Setting {
	var out []console.Setting
	live, warnings := h.live.Load(), map[string]string{}
	for _, w := range slices.Concat(Warnings(live), Shortages(live)) {
		warnings[w.Name] = w.Detail
	}
	if ahead := h.kept.log.Skew(); ahead.Abs() >= time.Second {
		warnings["OPENSKILL_DATABASE_URL"] = clockOff(ahead)
	}
	for _, v := range live.Show() {
		from := v.Source
		if from == "" {
			from = config.FromDefault
		}
		out = append(out, console.Setting{Name: v.Env, Value: v.Value, From: string(from), Doc: v.Doc, Secret: v.Secret && v.Value != "", Warning: warnings[v.Env]})
	}
	return out
}
