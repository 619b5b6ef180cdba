package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"openskill/host/app/config"
	"openskill/host/catalogue"
	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// readOptions returns the options for reading skill folders. run_code is only added for the folders of the settings,
// not for a folder that a command names.
func readOptions(s *config.Settings, roots []manifest.Root, schemas *manifest.Schemas) manifest.Options {
	code := codeDir(s)
	if len(roots) > 0 && !slices.Equal(roots, Roots(s, nil)) {
		code = ""
	}
	return manifest.Options{Roots: roots, List: s.SkillConfigPath, CLIDir: s.CLIDir, StateDir: s.StateDir, Code: code, Defaults: s.Defaults(), Caps: s.Caps(), Packages: runtimes.CheckRequires, Schemas: schemas}
}

// codeDir is the empty folder of the skill run_code.
func codeDir(s *config.Settings) string {
	path, err := filepath.Abs(filepath.Join(s.StateDir, "code")) // a worker has another working folder
	if err != nil {
		return ""
	}
	return path
}

// PackagesFolder returns the folder that a command on packages names: that of run_code, by its id, or another one.
func PackagesFolder(s *config.Settings, folder string) (string, error) {
	if folder != skill.RunCode {
		return folder, nil
	}
	return codeDir(s), os.MkdirAll(codeDir(s), 0o700)
}

// openDefinitions reads the folders of skills and seeds the database with them. Folders
// that were named for this host alone seed nothing: they are somebody's who tries them.
//
// opening a host is no call that somebody could leave
func (h *Host) openDefinitions(roots []manifest.Root, named bool) error {
	if err := os.MkdirAll(codeDir(h.settings), 0o700); err != nil {
		return err
	}
	own, err := manifest.Open(readOptions(h.settings, roots, h.schemas))
	if err != nil {
		return err
	}
	if named {
		h.skills = catalogue.StillDefinitions(own)
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), opening)
	defer stop()
	h.skills, err = Definitions(ctx, h.settings, h.kept.db, catalogue.DefinitionOptions{Own: own, Log: h.log, Remote: true, Registry: manifest.Options{Schemas: h.schemas}})
	return err
}

// Definitions gives the operator's skills as a database has them. Of the options, what
// was read of the settings' folders is required; of Registry, Schemas is taken.
func Definitions(ctx context.Context, s *config.Settings, db *store.DB, o catalogue.DefinitionOptions) (*catalogue.Definitions, error) {
	o.DB, o.Registry = db, readOptions(s, Roots(s, nil), o.Registry.Schemas)
	return catalogue.OpenDefinitions(ctx, o)
}

func (h *Host) watch() error {
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { h.KeepUp(ctx) })
	h.owns(func() error {
		stop()
		ended.Wait()
		return nil
	})
	return nil
}

// KeepUp reads what other processes change of skills, until ctx ends. A host that serves
// does so by itself.
func (h *Host) KeepUp(ctx context.Context) { h.kept.db.Watch(ctx, h.changed) }

// changed reads what was changed of a topic.
func (h *Host) changed(ctx context.Context, topic string) error {
	switch topic {
	case catalogue.DefinitionsTopic:
		return h.skills.Refresh(ctx)
	case catalogue.Topic:
		if h.uploads != nil {
			return h.uploads.Refresh(ctx)
		}
	}
	return nil
}
