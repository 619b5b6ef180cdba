// Command guest is the guest program of the conformance suite, for runners of
// WASI commands: it does what its first argument names. The behaviours are
// documented as runnertest.Behaviour.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: guest BEHAVIOUR N [NAME…]")
		os.Exit(64)
	}
	n, err := strconv.ParseUint(os.Args[2], 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "N:", err)
		os.Exit(64)
	}
	names := os.Args[3:]
	switch os.Args[1] {
	case "echo":
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			os.Exit(65)
		}
	case "drain":
		read, err := io.Copy(io.Discard, os.Stdin)
		if err != nil {
			os.Exit(65)
		}
		fmt.Println(read)
	case "print":
		pattern(os.Stdout, n)
	case "print-forever":
		pattern(os.Stdout, 1<<63)
	case "stderr":
		fmt.Print("out")
		pattern(os.Stderr, n)
	case "exit":
		fmt.Print("bye")
		os.Exit(int(n)) //nolint:gosec // proc_exit takes the low 32 bits, which is the point
	case "spin":
		for { //nolint:staticcheck // spinning is the point
		}
	case "sleep":
		time.Sleep(time.Duration(n) * time.Millisecond) //nolint:gosec // the suite asks for minutes
	case "allocate":
		var kept [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 'x'
			}
			kept = append(kept, b) //nolint:staticcheck // being kept is the point
		}
	case "recurse":
		fmt.Println(down(n))
	case "environment":
		env := map[string]string{}
		for _, kv := range os.Environ() {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		list(map[string]any{"env": env, "args": append([]string{}, os.Args[2:]...)})
	case "read-file":
		b, err := os.ReadFile(names[0])
		if err != nil {
			fmt.Println("refused")
			os.Exit(3)
		}
		os.Stdout.Write(b) //nolint:errcheck // the suite compares what arrives
	case "write-work":
		for _, name := range names {
			writeFile(path.Join("work", name), n)
		}
	case "fill-work":
		list(fill(n))
	case "list-work":
		entries, err := os.ReadDir("work")
		found := make([]string, 0, len(entries))
		for _, e := range entries {
			found = append(found, e.Name())
		}
		sort.Strings(found)
		if err != nil {
			found = nil
		}
		list(found)
	case "write-data":
		list(writeData())
	default:
		fmt.Fprintf(os.Stderr, "unknown behaviour %q\n", os.Args[1])
		os.Exit(64)
	}
}

// pattern prints the first n bytes of runnertest.Pattern.
func pattern(to io.Writer, n uint64) {
	w := bufio.NewWriter(to)
	defer w.Flush() //nolint:errcheck // a full stream is the suite's finding
	for i := uint64(0); n > 0; i = (i + 1) % 10_000_000 {
		line := fmt.Sprintf("%07d\n", i)
		line = line[:min(n, 8)]
		if _, err := w.WriteString(line); err != nil {
			os.Exit(66)
		}
		n -= uint64(len(line))
	}
}

//go:noinline
func down(n uint64) uint64 { return down(n+1) + 1 } //nolint:staticcheck // no end is the point

func list(v any) {
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		os.Exit(66)
	}
}

func writeFile(name string, n uint64) {
	if err := os.MkdirAll(path.Dir(name), 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(67)
	}
	f, err := os.Create(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(67)
	}
	pattern(f, n)
	if err := f.Close(); err != nil {
		os.Exit(67)
	}
}

func fill(n uint64) (done uint64) {
	block := make([]byte, 64<<10)
	for done < n {
		if os.WriteFile(fmt.Sprintf("work/%05d", done), block, 0o644) != nil {
			break
		}
		done++
	}
	return done
}

func writeData() []string {
	const name = "data/a.txt"
	open := func(flag int, text string) error {
		f, err := os.OpenFile(name, flag, 0o644)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // the suite looks at the folder afterwards
		_, err = f.WriteString(text)
		return err
	}
	ways := []struct {
		name string
		try  func() error
	}{
		{"update", func() error { return open(os.O_RDWR, "X") }},
		{"append", func() error { return open(os.O_WRONLY|os.O_APPEND, "more") }},
		{"cut", func() error { return os.Truncate(name, 1) }},
		{"truncate", func() error { return open(os.O_WRONLY|os.O_CREATE|os.O_TRUNC, "") }},
		{"create", func() error { return os.WriteFile("data/new.txt", nil, 0o644) }},
		{"folder", func() error { return os.Mkdir("data/new", 0o755) }},
		{"link", func() error { return os.Link(name, "data/c.txt") }},
		{"symlink", func() error { return os.Symlink("a.txt", "data/d.txt") }},
		{"times", func() error { return os.Chtimes(name, time.Unix(0, 0), time.Unix(0, 0)) }},
		{"rename", func() error { return os.Rename(name, "data/b.txt") }},
		{"remove", func() error { return os.Remove(name) }},
	}
	worked := []string{}
	for _, w := range ways {
		if w.try() == nil {
			worked = append(worked, w.name)
		}
	}
	return worked
}
