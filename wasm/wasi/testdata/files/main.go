// Command files uses what a Go program can reach of preview1, and prints what it
// sees. It runs on this host and on wazero's own, which must agree.
package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"strings"
	"time"
)

func main() {
	switch os.Args[1] {
	case "late":
		late()
	case "large":
		for i := range 20_000 {
			fmt.Println("line", i)
		}
	default:
		files()
	}
}

// late says that it is ready while another goroutine waits for input.
func late() {
	time.AfterFunc(10*time.Millisecond, func() { fmt.Print("ready ") })
	b, err := io.ReadAll(os.Stdin)
	fmt.Printf("%s %v", b, err)
}

func files() {
	fmt.Println("args", os.Args[1:], "env", os.Environ())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println("line", in.Text())
	}

	show("read", func() error {
		b, err := os.ReadFile("/data/a.txt")
		fmt.Printf("%q ", b)
		return err
	})
	show("stat", func() error {
		info, err := os.Stat("data/sub")
		if err == nil {
			fmt.Print(info.IsDir(), info.Name(), " ")
		}
		return err
	})
	show("missing", func() error { _, err := os.Stat("/data/none"); return err })
	show("not a folder", func() error { _, err := os.ReadFile("/data/a.txt/x"); return err })
	show("walk", func() error {
		var names []string
		err := fs.WalkDir(os.DirFS("/data"), ".", func(path string, d fs.DirEntry, err error) error {
			names = append(names, fmt.Sprint(path, d != nil && d.IsDir()))
			return err
		})
		sort.Strings(names)
		fmt.Print(strings.Join(names, " "), " ")
		return err
	})
	show("write", func() error { return os.WriteFile("/work/f", []byte("hello"), 0o600) })
	show("append", func() error {
		f, err := os.OpenFile("/work/f", os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(" world")
		return err
	})
	show("random access", func() error {
		f, err := os.OpenFile("/work/f", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("J"), 0); err != nil {
			return err
		}
		b := make([]byte, 20)
		n, err := f.ReadAt(b, 6)
		fmt.Printf("%q %v ", b[:n], err)
		end, err := f.Seek(-5, io.SeekEnd)
		fmt.Print(end, err, " ")
		if err := f.Truncate(7); err != nil {
			return err
		}
		info, err := f.Stat()
		fmt.Print(info.Size(), " ")
		return err
	})
	show("exclusive", func() error {
		_, err := os.OpenFile("/work/f", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		return err
	})
	show("mkdir", func() error { return os.MkdirAll("/work/d/e", 0o700) })
	show("rename", func() error { return os.Rename("/work/f", "/work/d/e/g") })
	show("remove full", func() error { return os.Remove("/work/d") })
	show("times", func() error {
		when := time.Unix(1_600_000_000, 0)
		err := os.Chtimes("/work/d/e/g", when, when)
		info, _ := os.Stat("/work/d/e/g")
		fmt.Print(info.ModTime().Unix(), " ")
		return err
	})
	show("list", func() error {
		entries, err := os.ReadDir("/work/d/e")
		fmt.Print(entries, " ")
		return err
	})
	show("remove all", func() error { return os.RemoveAll("/work/d") })
	show("is it gone", func() error { _, err := os.Stat("/work/d"); return err })
	show("sleep", func() error { time.Sleep(time.Millisecond); return nil })
	show("random", func() error { n, err := rand.Read(make([]byte, 10)); fmt.Print(n, " "); return err })
	fmt.Fprintln(os.Stderr, "to stderr")
	os.Exit(7)
}

// show prints whether a step worked, with the error in the words that the two
// hosts share.
func show(what string, step func() error) {
	fmt.Print(what, ": ")
	err := step()
	switch {
	case err == nil:
		fmt.Println("ok")
	case errors.Is(err, fs.ErrNotExist):
		fmt.Println("not there")
	case errors.Is(err, fs.ErrExist):
		fmt.Println("there")
	default:
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		fmt.Println(err)
	}
}
