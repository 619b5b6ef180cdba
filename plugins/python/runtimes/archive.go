package runtimes

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// archiveReader reads members of an archive by name: of a zip for pip, of a
// compressed tar for npm. Members that nobody names are not looked at.
func archiveReader(m manager, path string) (member func(name string, most int64) ([]byte, error), closing func() error, err error) {
	if m == npm {
		return func(name string, most int64) ([]byte, error) { return tarMember(path, name, most) }, func() error { return nil }, nil
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, nil, err
	}
	return func(name string, most int64) ([]byte, error) {
		for _, f := range z.File {
			if f.Name == name {
				return readMember(f, most)
			}
		}
		return nil, fmt.Errorf("the archive has no %s", name)
	}, z.Close, nil
}

func tarMember(path, name string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for t := tar.NewReader(g); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the archive has no %s", name)
		}
		if err != nil {
			return nil, err
		}
		if h.Name == name && h.Typeflag == tar.TypeReg {
			return readAtMost(t, name, most)
		}
	}
}
