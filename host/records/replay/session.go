package replay

import (
	"context"
	"fmt"
	"slices"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Before is the session that a run went on with. Its memory is not stored: it is what the runs before left, which a
// replay makes again.
type Before struct {
	ID       string   `json:"id"`
	Run      string   `json:"run,omitempty"` // the execution that left the memory; "": none
	Seed     []byte   `json:"seed"`
	Made     int64    `json:"made"`
	Ahead    []string `json:"ahead,omitempty"`
	Packages []string `json:"packages,omitempty"`
	MemoryMB uint64   `json:"memory_mb"`
}

func beforeOf(h *records.HeldSession) *Before {
	if h == nil {
		return nil
	}
	return &Before{ID: h.ID, Run: h.Last, Seed: h.State.Seed[:], Made: h.State.Made, Ahead: h.Ahead, Packages: h.Packages, MemoryMB: h.MemoryMB}
}

// with returns the session with a memory.
func (b *Before) with(memory []byte) *records.HeldSession {
	h := &records.HeldSession{
		Session: skill.Session{ID: b.ID, Packages: b.Packages, MemoryMB: b.MemoryMB},
		State:   skill.SessionState{Made: b.Made, Most: records.MostSessionBytes, State: memory},
	}
	copy(h.State.Seed[:], b.Seed)
	if b.Run != "" {
		h.Ahead = append([]string{}, b.Ahead...) // not nil
	}
	return h
}

// maxRuns is the maximum number of runs of a session that a replay makes again.
const maxRuns = 100

// chain returns the executions that a replay of one makes again: those that left the memory of its session, and itself,
// in their order. The report has nothing but the names of the execution.
func (r *Replayer) chain(ctx context.Context, p skill.Principal, id string) (all []string, report *Report, err error) {
	for run := id; ; {
		if len(all) == maxRuns {
			return nil, nil, &skill.Error{
				Op: "replay.Replay", Code: skill.Conflict, Subject: id,
				Message: fmt.Sprintf("this execution cannot be replayed: more than %d runs of its session came before it", maxRuns-1),
			}
		}
		rec, err := r.inTurn(ctx, p, run)
		if err == nil && run != id && r.o.Request != nil {
			err = r.o.Request(ctx, p)
		}
		if err != nil {
			return nil, nil, earlier(id, run, err)
		}
		if report == nil {
			report = &Report{ExecutionID: id, Skill: rec.Started.Skill, Version: rec.Started.Version, Draws: len(rec.Draws)}
		}
		all = append(all, run)
		if rec.Session == nil || rec.Session.Run == "" {
			slices.Reverse(all)
			return all, report, nil
		}
		run = rec.Session.Run
	}
}

func (r *Replayer) inTurn(ctx context.Context, p skill.Principal, id string) (*Recording, error) {
	leave, err := r.turn(ctx, p)
	if err != nil {
		return nil, err
	}
	defer leave()
	return r.get(ctx, p, id)
}

// earlier says that an earlier run of the session of an execution cannot be made again.
func earlier(id, run string, err error) error {
	if code := skill.CodeOf(err); run == id || code != skill.NotFound && code != skill.Conflict {
		return err
	}
	return &skill.Error{
		Op: "replay.Replay", Code: skill.Conflict, Subject: id, Err: err,
		Message: skill.CleanText(fmt.Sprintf("this execution cannot be replayed, because an earlier run of its session, %s, cannot: %s", run, messageOf(err)), skill.MaxMessage),
	}
}

// addEarlier adds the differences of an earlier run of the session.
func (r *Report) addEarlier(earlier *Report) {
	for _, d := range earlier.Differences {
		d.Name = fmt.Sprintf("run %s %s %s", earlier.ExecutionID, d.Field, d.Name)
		d.Field = "session"
		r.differ(d)
	}
}
