// Command files does to the files that it sees what its arguments say: it is the
// guest of the tests of files.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	var err error
	switch what, path := os.Args[1], os.Args[2]; what {
	case "read":
		var b []byte
		if b, err = os.ReadFile(path); err == nil {
			os.Stdout.Write(b)
		}
	case "list":
		err = list(path)
	case "walk":
		n := 0
		err = filepath.WalkDir(path, func(_ string, _ fs.DirEntry, err error) error {
			n++
			return err
		})
		fmt.Print(n)
	case "spin":
		n, _ := strconv.Atoi(os.Args[3])
		seen := map[string]bool{}
		for range n {
			if b, err := os.ReadFile(path); err == nil {
				seen[string(b)] = true
			}
		}
		for s := range seen {
			fmt.Println(s)
		}
	case "change":
		change(path)
	case "offsets":
		offsets(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// list prints what is in a folder, in two ways that must tell the same.
func list(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	infos, err := f.Readdir(0)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if infos[i].Name() != e.Name() || infos[i].Mode().Type() != e.Type() {
			return fmt.Errorf("%s is %v in one way, %s %v in the other", e.Name(), e.Type(), infos[i].Name(), infos[i].Mode())
		}
		fmt.Println(e.Name(), infos[i].Mode(), infos[i].Size())
	}
	return nil
}

// change tries every way to change a file or what is beside it, and prints those
// that claim to have worked.
func change(path string) {
	try := func(name string, err error) {
		if err == nil {
			fmt.Println(name, path)
		}
	}
	for _, flags := range []int{
		os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND,
		os.O_RDWR | os.O_CREATE, os.O_RDONLY | os.O_CREATE, os.O_RDWR | os.O_CREATE | os.O_EXCL, os.O_RDWR | os.O_CREATE | os.O_TRUNC,
	} {
		f, err := os.OpenFile(path, flags, 0o777)
		if err != nil {
			continue
		}
		if _, err = f.Write([]byte("changed")); err == nil {
			try(fmt.Sprintf("write with flags %#x", flags), nil)
		}
		try("truncate the descriptor", f.Truncate(1))
		f.Close()
	}
	if f, err := os.Open(path); err == nil {
		_, err = f.WriteAt([]byte("changed"), 0)
		try("write to one opened for reading", err)
		try("truncate one opened for reading", f.Truncate(1))
		f.Close()
	}
	try("mkdir", os.Mkdir(path+".d", 0o777))
	try("mkdir below", os.Mkdir(filepath.Join(path, "d"), 0o777))
	try("rename", os.Rename(path, path+".r"))
	try("rename over", os.Rename("/work/mine", path))
	try("rename out", os.Rename(path, "/work/theirs"))
	try("link", os.Link(path, path+".l"))
	try("symlink", os.Symlink("/etc/passwd", path+".s"))
	try("truncate", os.Truncate(path, 1))
	try("times", os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
	try("remove", os.Remove(path))
	try("remove all", notGone(path, os.RemoveAll(path)))
}

// notGone makes an error of a removal that had nothing to remove.
func notGone(path string, err error) error {
	if _, statErr := os.Lstat(path); err == nil && statErr == nil {
		return fs.ErrExist
	}
	if err == nil {
		return fs.ErrNotExist
	}
	return err
}

// offsets reads around the ends of what a file's offset can be.
func offsets(path string) {
	f, err := os.Open(path)
	if err != nil {
		fmt.Print(err)
		return
	}
	b := make([]byte, 4)
	for _, at := range []int64{1<<63 - 1, 1<<63 - 4, 1 << 62, 1 << 32, 1 << 31} {
		n, err := f.ReadAt(b, at)
		fmt.Println(n, err)
		_, err = f.Seek(at, 0)
		n, _ = f.Read(b)
		fmt.Println(n, err)
	}
	_, err = f.Seek(1<<63-1, 0)
	_, err2 := f.Seek(1<<63-1, 1)
	fmt.Println(err, err2 != nil)
	_, err = f.Seek(-1, 0)
	fmt.Println(err != nil)
}
