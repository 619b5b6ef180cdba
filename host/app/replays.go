package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"openskill/host/app/config"
	"openskill/host/dispatch"
	"openskill/host/records/replay"
	"openskill/sdk/skill"
)

// maxRecording is how many bytes a recording may have.
const maxRecording = 16 << 20

// openRecordings opens what runs are recorded in. Those that are there can be replayed,
// whether or not more are made.
func (h *Host) openRecordings() error {
	key, err := recordingKey(h.settings.StateDir, h.settings.Record == config.RecordOn)
	if err != nil {
		return err
	}
	h.recordings, err = replay.New(replay.Options{
		Store: replay.NewStore(h.kept.db), Executions: h.kept.executions, Most: maxRecording, Key: key, Version: Version, Now: h.kept.log.DatabaseTime, Request: h.kept.quotas.Request,
	})
	return err
}

// records is what the door records runs with; nil: none are recorded.
func (h *Host) records() dispatch.Recordings {
	if h.settings.Record != config.RecordOn {
		return nil
	}
	return h.recordings
}

// mostRecorded is how many bytes of a recording come with the end of a run.
func mostRecorded(s *config.Settings) uint64 {
	if s.Record != config.RecordOn {
		return 0
	}
	return maxRecording + 1<<20 // what was seen comes beside
}

// Replay makes the run of an execution again, for who may see the one and call the
// skill. It waits for a runtime that is not ready. The error is a *skill.Error; that the
// two differ is none.
func (h *Host) Replay(ctx context.Context, p skill.Principal, id string) (*replay.Report, error) {
	if err := h.kept.quotas.Request(ctx, p); err != nil { // what differs is found without a run, and takes as long
		return nil, err
	}
	e, err := h.kept.executions.Execution(ctx, p, id)
	switch {
	case err != nil:
		return nil, err
	case !p.MayInvoke(skill.ID(e.Skill)):
		return nil, &skill.Error{Op: "host.Replay", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope to call the skill that the replay runs"}
	case e.Script != "":
		h.PrepareScript(ctx, e.Skill, e.Script)
	default:
		h.Prepare(ctx, skill.ID(e.Skill))
	}
	return h.recordings.Replayer(h.door).Replay(ctx, p, id)
}

// replay is Replay for an edge that writes whatever it is given.
func (h *Host) replay(ctx context.Context, p skill.Principal, id string) (any, error) {
	return h.Replay(ctx, p, id)
}

// recordingKey is the secret by which hashes of granted values are this host's alone. It
// is made for the first recording; without one, values that were granted then and now
// cannot be compared, which a replay says.
func recordingKey(stateDir string, makes bool) ([]byte, error) {
	key, err := stateKey(stateDir, "recording", makes)
	if err != nil {
		return nil, fmt.Errorf("the key of recordings: %w", err)
	}
	return key, nil
}

// stateKey reads a key of the state folder, NAME.key. Where there is none, or a damaged one, it
// makes one, or gives nil.
func stateKey(stateDir, name string, makes bool) ([]byte, error) {
	path := filepath.Join(stateDir, name+".key")
	key, err := os.ReadFile(path)
	switch {
	case err == nil && len(key) == keySize:
		return key, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !makes:
		return nil, nil
	}
	f, err := os.CreateTemp(stateDir, name+"-*.key")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	key = make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	return key, err
}

const keySize = 32
