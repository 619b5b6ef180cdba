package admission

import (
	"context"
	"errors"
	"io/fs"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// Again makes the report of a skill that was admitted before, of its files as they lie on
// the disk. Checking is deterministic, so what it says of them is what was said then;
// what the skill gets is by the caps and grants of today, and so is a refusal of
// what this host would not take any more. What only the archive knew is not in it:
// the order of its files, and bits that were dropped. The error is an *skill.Error
// where there is no verdict.
func (a *Admission) Again(ctx context.Context, s *manifest.Skill) (*Report, error) {
	w := &work{o: &a.o, report: newReport()}
	w.report.read(s, a.o.Grant)
	err := w.look(ctx, s)
	var r *refusalError
	switch _, ok := errors.AsType[*skill.Error](err); {
	case err == nil:
		w.report.Verdict = Accepted
	case errors.As(err, &r):
		w.report.refuse((*Refusal)(r))
	case ok:
		return nil, err
	case ctx.Err() != nil:
		return nil, w.told(ctx.Err(), nil)
	default:
		return nil, &skill.Error{Op: "upload.Again", Code: skill.Internal, Message: "the host cannot read the files of this version", Err: err}
	}
	return w.report, nil
}

// look goes through the files of a folder that nothing changes any more.
func (w *work) look(ctx context.Context, s *manifest.Skill) error {
	t, err := newTree(ctx, w.o, s.Folder)
	if err != nil {
		return err
	}
	w.tree = t
	defer t.close()
	err = fs.WalkDir(t.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			w.report.Files = append(w.report.Files, File{Path: name, Size: info.Size()})
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.entries(ctx, s)
}
