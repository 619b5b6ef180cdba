// Package behave is what guest programs of the conformance suite do: what their first
// argument names. The behaviours are documented as runnertest.Behaviour.
package behave

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Run does what the arguments of this process say, with a call's input and its output,
// and gives the exit code.
func Run(stdin io.Reader, stdout io.Writer) uint32 {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: guest BEHAVIOUR N [NAME…]")
		return 64
	}
	n, err := strconv.ParseUint(os.Args[2], 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "N:", err)
		return 64
	}
	g := guest{stdin, stdout}
	if err := g.run(os.Args[1], n, os.Args[3:]); err != nil {
		code := new(exit)
		if errors.As(err, code) {
			return uint32(*code)
		}
		fmt.Fprintln(os.Stderr, err)
		return 66
	}
	return 0
}

// exit is the end of a guest with an exit code.
type exit uint32

func (e exit) Error() string { return "exit code " + strconv.FormatUint(uint64(e), 10) }

type guest struct {
	stdin  io.Reader
	stdout io.Writer
}

func (g *guest) run(do string, n uint64, names []string) error {
	switch do {
	case "echo":
		_, err := io.Copy(g.stdout, g.stdin)
		return err
	case "drain":
		read, err := io.Copy(io.Discard, g.stdin)
		if err != nil {
			return err
		}
		fmt.Fprintln(g.stdout, read)
	case "print":
		return pattern(g.stdout, n)
	case "print-forever":
		return pattern(g.stdout, 1<<63)
	case "stderr":
		fmt.Fprint(g.stdout, "out")
		return pattern(os.Stderr, n)
	case "exit":
		fmt.Fprint(g.stdout, "bye")
		return exit(n)
	case "spin":
		for { //nolint:staticcheck // spinning is the point
		}
	case "sleep":
		time.Sleep(time.Duration(n) * time.Millisecond)
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
		fmt.Fprintln(g.stdout, down(n))
	case "environment":
		env := map[string]string{}
		for _, kv := range os.Environ() {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		return g.list(map[string]any{"env": env, "args": append([]string{}, os.Args[2:]...)})
	case "read-file":
		b, err := os.ReadFile(names[0])
		if err != nil {
			fmt.Fprintln(g.stdout, "refused")
			return exit(3)
		}
		_, err = g.stdout.Write(b)
		return err
	case "write-work":
		for _, name := range names {
			if err := writeFile(path.Join("work", name), n); err != nil {
				return err
			}
		}
	case "fill-work":
		return g.list(fill(n))
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
		return g.list(found)
	case "write-data":
		return g.list(writeData())
	default:
		fmt.Fprintf(os.Stderr, "unknown behaviour %q\n", do)
		return exit(64)
	}
	return nil
}

// pattern prints the first n bytes of runnertest.Pattern.
func pattern(to io.Writer, n uint64) error {
	w := bufio.NewWriter(to)
	for i := uint64(0); n > 0; i = (i + 1) % 10_000_000 {
		line := fmt.Sprintf("%07d\n", i)
		line = line[:min(n, 8)]
		if _, err := w.WriteString(line); err != nil {
			return err
		}
		n -= uint64(len(line))
	}
	return w.Flush()
}

//go:noinline
func down(n uint64) uint64 { return down(n+1) + 1 } //nolint:staticcheck // no end is the point

func (g *guest) list(v any) error { return json.NewEncoder(g.stdout).Encode(v) }

func writeFile(name string, n uint64) error {
	if err := os.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(pattern(f, n), f.Close())
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
		defer f.Close()
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
