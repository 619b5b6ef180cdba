// Package backup carries the files that a host must not lose into one archive, and back
// into a folder.
//
// An archive is a tar, compressed by gzip, with the files by their paths in the state
// folder and, as its last entry, backup.json: what was made by which program, and size and
// SHA-256 of every file. So one that was cut off is known by what is missing, and one that
// was damaged by what does not agree. It is not encrypted and not signed: it holds inputs,
// results and hashes of keys, and belongs where the state folder may be.
package backup

import "time"

// Format is what this program writes, and the latest that it reads.
const Format = 1

// Index is the last entry of an archive.
type Index struct {
	Format   int       `json:"format"`
	Program  string    `json:"program"` // the version of openSkill that made it
	Made     time.Time `json:"made_at"`
	Database string    `json:"database"` // sqlite: among the files; postgres: not, its server has its own ways
	Schema   int64     `json:"schema"`   // of the database; 0 where it is not among the files
	Files    []File    `json:"files"`
}

// File is one file of an archive.
type File struct {
	Path   string `json:"path"` // in the state folder, with slashes
	Size   int64  `json:"size"`
	Digest string `json:"digest"` // sha256:…
}

// Bytes is the size of all files.
func (x *Index) Bytes() (n int64) {
	for _, f := range x.Files {
		n += f.Size
	}
	return n
}

const (
	indexName = "backup.json"
	maxIndex  = 256 << 20 // bytes of backup.json: of a million files
)
