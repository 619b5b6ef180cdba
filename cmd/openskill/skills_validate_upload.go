package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"openskill/host/admission"
	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/manifest"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// report is an upload and what a host would say of it.
type report struct {
	Name   string            `json:"name"` // as it was given
	Report *admission.Report `json:"report"`
}

// admission looks at an archive, or at a folder as if it had been packed, as a host
// does at uploads. Nothing of it is kept.
func (a *cli) admission(ctx context.Context, flags *settingsFlags, name string, folder bool) (*admission.Report, error) {
	s, err := a.load(flags)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "openskill-validate-")
	if err != nil {
		return nil, hostFailed(err)
	}
	defer admission.Discard(temp) //nolint:errcheck // the system's folder of temporary files
	var archive *os.File
	if folder {
		if archive, err = os.CreateTemp(temp, "packed-"); err != nil {
			return nil, hostFailed(err)
		}
		err = admission.Pack(archive, name)
	} else {
		archive, _, err = openRegular(name)
	}
	if archive != nil {
		defer archive.Close()
	}
	if err != nil {
		return nil, usage("cannot read %s: %v", quote(name), plain(err))
	}
	checked, err := admissionOf(s)
	if err != nil {
		return nil, err
	}
	admitted, err := checked.Admit(ctx, admission.Source{Archive: archive}, temp)
	if err == nil {
		return admitted.Report, nil
	}
	if told, ok := errors.AsType[*skill.Error](err); ok {
		if r, ok := told.Details["report"].(*admission.Report); ok {
			return r, nil
		}
	}
	return nil, hostFailed(err)
}

// admissionOf admits as a host with these settings does.
func admissionOf(s *config.Settings) (*admission.Admission, error) {
	o := manifest.Options{Defaults: s.Defaults(), Caps: s.Caps(), Packages: runtimes.CheckRequires}
	a, err := admission.New(admission.Options{
		Registry: o, Checker: checker{}, Agent: app.ReadUpload(o), MaxArchive: s.MaxUpload(),
		Grant: func(k *manifest.Skill) skill.Permissions { return app.Granted(s, k) },
	})
	if err != nil {
		return nil, hostFailed(err)
	}
	return a, nil
}

// checker checks modules in this process, which does nothing else and ends.
type checker struct{}

func (checker) Check(_ context.Context, kind skill.Kind, s *skill.Spec, _ *time.Duration) (json.RawMessage, error) {
	module, err := os.ReadFile(filepath.Join(s.Folder, kind.File(s.Entry)))
	if err != nil {
		return nil, err
	}
	report, err := wasm.Check(module, nil)
	text, broken := json.Marshal(report)
	if broken != nil {
		return nil, broken
	}
	if refused, ok := errors.AsType[*check.Error](err); ok {
		err = &skill.Error{Op: "openskill.check", Code: skill.Code(refused.Code), Message: refused.Error()}
	}
	return text, err
}
