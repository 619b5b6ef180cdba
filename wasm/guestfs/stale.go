package guestfs

import "time"

// Stale is an open [File] of an earlier run. Every operation is ESTALE, except Close.
type Stale struct{}

var _ File = Stale{}

// Stat implements [File].
func (Stale) Stat() (Stat, Errno) { return Stat{}, ESTALE }

// ReadAt implements [File].
func (Stale) ReadAt([]byte, int64) (int, Errno) { return 0, ESTALE }

// WriteAt implements [File].
func (Stale) WriteAt([]byte, int64) (int, Errno) { return 0, ESTALE }

// Truncate implements [File].
func (Stale) Truncate(int64) Errno { return ESTALE }

// SetTimes implements [File].
func (Stale) SetTimes(_, _ *time.Time) Errno { return ESTALE }

// ReadDir implements [File].
func (Stale) ReadDir(int) ([]Dirent, Errno) { return nil, ESTALE }

// Rewind implements [File].
func (Stale) Rewind() Errno { return ESTALE }

// Close implements [File].
func (Stale) Close() error { return nil }
