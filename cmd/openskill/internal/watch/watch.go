// Package watch sees what changes in a folder of sources, and has work done anew for it.
//
// It looks at all files again and again: a skill's folder is small, that works on every
// file system, and an editor's way to save a file makes no difference.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MaxFiles is how many files a folder may have, as one of a skill may.
const MaxFiles = 10_000

// Files are the files of a folder by their paths in it, with slashes.
type Files map[string]Stamp

// Stamp tells one content of a file from another.
type Stamp struct {
	Size     int64
	Modified time.Time
}

// Changed gives the paths that are not the same in both, sorted.
func (f Files) Changed(before Files) []string {
	var list []string
	for name, stamp := range f {
		if was, ok := before[name]; !ok || was.Size != stamp.Size || !was.Modified.Equal(stamp.Modified) {
			list = append(list, name)
		}
	}
	for name := range before {
		if _, ok := f[name]; !ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// Look reads a folder. made are paths in it that builds write, which are left out, as is
// what Ignored names.
func Look(folder string, made ...string) (Files, error) {
	files := Files{}
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name != folder {
			return nil // it has gone meanwhile
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case rel == ".":
			return nil
		case Ignored(path.Base(rel), d.IsDir()):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || slices.Contains(made, rel):
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if files[rel] = (Stamp{info.Size(), info.ModTime()}); len(files) > MaxFiles {
			return fmt.Errorf("more than %d files", MaxFiles)
		}
		return nil
	})
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return nil, pe.Err
	}
	return files, err
}

// Ignored reports whether a file or folder of this name is none of the sources: hidden,
// an editor's own, or written by a build.
func Ignored(name string, folder bool) bool {
	switch {
	case strings.HasPrefix(name, "."):
		return true
	case folder:
		return name == "target" || name == "node_modules" || name == "__pycache__"
	case name == "Cargo.lock", name == "4913": // cargo writes the one, vim tries with the other whether it may
		return true
	case strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#"), strings.HasSuffix(name, "~"):
		return true
	}
	switch path.Ext(name) {
	case ".swp", ".swo", ".swx", ".tmp", ".bak", ".pyc":
		return true
	}
	return false
}

// Loop does work whenever the files have changed.
type Loop struct {
	// Look reads the files.
	Look func() (Files, error)
	// Work is done for all files at first, when changed is nil, and then for those that have
	// changed since it was last done to its end. It runs beside Look, and its context ends
	// when files change meanwhile: then it is asked again, for these as well. It reports
	// whether it came to its end.
	Work func(ctx context.Context, changed []string) bool
	// Tick says when to look. What has changed must be the same at two ticks in a row, since
	// whoever saves several files is not done with the first one.
	Tick <-chan time.Time
}

// Run works until ctx ends, whose end is no error, or the folder cannot be read.
func (l *Loop) Run(ctx context.Context) error {
	done, err := l.Look()
	if err != nil {
		return err
	}
	var changed []string // nil: all
	for {
		now, ended, err := l.once(ctx, done, changed)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if now == nil {
			if now, err = l.wait(ctx, done); err != nil || now == nil {
				return err
			}
		}
		switch fresh := now.Changed(done); {
		case ended:
			changed = fresh
		case changed != nil: // what was interrupted has not been worked for yet; all stays all
			changed = union(changed, fresh)
		}
		done = now
	}
}

// once does the work once. now are the files as they are where they have changed
// meanwhile; ended says that the work came to its end all the same.
func (l *Loop) once(ctx context.Context, done Files, changed []string) (now Files, ended bool, err error) {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	end := make(chan bool, 1)
	go func() { end <- l.Work(work, changed) }()
	before := done
	for {
		select {
		case <-end: // an end without success is one, too: it waits for a change
			return nil, true, nil
		case <-ctx.Done():
			<-end
			return nil, false, nil
		case <-l.Tick:
		}
		now, err := l.Look()
		if err == nil && (len(now.Changed(done)) == 0 || !maps.Equal(now, before)) {
			before = now
			continue
		}
		cancel()
		return now, <-end, err
	}
}

// wait gives the files once they have changed; nil when ctx has ended.
func (l *Loop) wait(ctx context.Context, done Files) (Files, error) {
	before := done
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-l.Tick:
		}
		now, err := l.Look()
		if err != nil {
			return nil, err
		}
		if len(now.Changed(done)) > 0 && maps.Equal(now, before) {
			return now, nil
		}
		before = now
	}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
