package admission

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Pack writes the files of a skill's folder as a zip, as an upload wants it: in the
// order of their names and without times, so that the same files give the same
// bytes. Links and whatever else is no file are an error, and so is more than an
// upload may have by default.
func Pack(w io.Writer, folder string) error {
	return pack(w, folder, nil, defaultFiles, defaultUnpacked)
}

// PackSome is [Pack] without what leave says of a path, and for a folder of all that is in
// it. Of links too: what does not travel may be anything.
func PackSome(w io.Writer, folder string, leave func(name string, folder bool) bool) error {
	return pack(w, folder, leave, defaultFiles, defaultUnpacked)
}

func pack(w io.Writer, folder string, leave func(name string, folder bool) bool, most int, mostBytes int64) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	z := zip.NewWriter(w)
	files, left := 0, mostBytes
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != "." && leave != nil && leave(name, d.IsDir()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is a link or special file; only files and folders are accepted", show(name))
		}
		if files++; files > most {
			return fmt.Errorf("the folder has more than %d files", most)
		}
		n, err := packFile(z, root, name, left)
		if left -= n; err == nil && left < 0 {
			err = fmt.Errorf("the files have more than %d bytes together", mostBytes)
		}
		return err
	})
	return errors.Join(err, z.Close())
}

// packFile writes at most one byte more than most, and says how many.
func packFile(z *zip.Writer, root *os.Root, name string, most int64) (int64, error) {
	f, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := &zip.FileHeader{Name: name, Method: zip.Deflate}
	h.SetMode(0o644)
	out, err := z.CreateHeader(h)
	if err != nil {
		return 0, err
	}
	return io.Copy(out, io.LimitReader(f, most+1))
}
