package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/ergochat/readline"

	"openskill/sdk/skill"
)

// lines are what somebody says, one after the other.
type lines interface {
	// Read gives the next line without its end. The error is io.EOF after the last one
	// and when the chat is ended, errInterrupted where a person has pressed Ctrl-C, and
	// errLongLine. keep has a line be there again when a person looks for it later.
	Read(prompt string, keep bool) (string, error)
	// Forget forgets what was typed before anybody was asked.
	Forget()
	Close() error
}

var (
	errInterrupted = errors.New("interrupted")
	errLongLine    = errors.New("a line is longer than 1 MiB")
)

// pipedLines are those of a standard input that is no terminal.
type pipedLines struct {
	ctx  context.Context //nolint:containedctx // of the one command that reads them
	next chan pipedLine
}

type pipedLine struct {
	text string
	err  error
}

// newPipedLines reads ahead by one line. A reader that never ends is left behind when ctx
// ends.
func newPipedLines(ctx context.Context, r io.Reader) *pipedLines {
	p := &pipedLines{ctx: ctx, next: make(chan pipedLine)}
	go func() {
		defer close(p.next)
		in := bufio.NewScanner(r)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			select {
			case p.next <- pipedLine{text: string(bytes.TrimPrefix(in.Bytes(), []byte("\xef\xbb\xbf")))}:
			case <-ctx.Done():
				return
			}
		}
		err := in.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = errLongLine
		}
		if err != nil {
			select {
			case p.next <- pipedLine{err: err}:
			case <-ctx.Done():
			}
		}
	}()
	return p
}

func (p *pipedLines) Read(string, bool) (string, error) {
	select {
	case l, more := <-p.next:
		if !more {
			return "", io.EOF
		}
		return l.text, l.err
	case <-p.ctx.Done():
		return "", io.EOF
	}
}

func (p *pipedLines) Forget()      {}
func (p *pipedLines) Close() error { return nil }

// typedLines are those of a person at a terminal, who can edit them and have those back
// that were typed before.
type typedLines struct {
	rl   *readline.Instance
	keep *keptLines
	in   *os.File
	out  *os.File
	stop func() bool
	echo func() // has the terminal show again what is typed
}

// newTypedLines begins to read from the terminal. They end with ctx.
func newTypedLines(ctx context.Context, in, out *os.File, keep *keptLines, commands []string) (*typedLines, error) {
	at := &columnOne{in: in, out: out}
	rl, err := readline.NewFromConfig(&readline.Config{
		Stdin: at, Stdout: at, Stderr: at, AutoComplete: completer(commands),
		HistoryLimit: mostKept, DisableAutoSaveHistory: true, InterruptPrompt: "^C", EOFPrompt: "\n", Undo: true,
	})
	if err != nil {
		return nil, err
	}
	for _, l := range keep.load() {
		_ = rl.SaveToHistory(l) // it has no file of its own, so nothing can fail
	}
	// While nobody reads a line, what is typed would stand within what is shown.
	t := &typedLines{rl: rl, keep: keep, in: in, out: out, echo: noEcho(in)}
	t.stop = context.AfterFunc(ctx, func() { _ = rl.Close() })
	return t, nil
}

func completer(commands []string) readline.AutoCompleter {
	all := &readline.PrefixCompleter{}
	for _, c := range commands {
		all.Children = append(all.Children, &readline.PrefixCompleter{Name: c})
	}
	return all
}

func (t *typedLines) Read(prompt string, keep bool) (string, error) {
	// Where it could not be kept from being shown, what was typed while nobody read it is
	// in the line, and is read again.
	if _, err := t.out.WriteString("\r\x1b[K"); err != nil {
		return "", io.EOF
	}
	t.rl.SetPrompt(prompt)
	line, err := t.rl.ReadLine()
	switch {
	case errors.Is(err, readline.ErrInterrupt):
		return line, errInterrupted
	case err != nil:
		return "", io.EOF // also when it was closed
	case keep && line != quitCommand && !strings.HasPrefix(line, " "):
		_ = t.rl.SaveToHistory(line)
		t.keep.add(line)
	default:
		_ = t.rl.SaveToHistory("") // what was typed is not in the list, and nothing half typed either
	}
	return line, nil
}

func (t *typedLines) Forget() { forgetTyped(t.in) }

// width is that of the terminal as it is now.
func (t *typedLines) width() int {
	w, _ := t.rl.GetConfig().FuncGetSize()
	return w
}

func (t *typedLines) Close() error {
	t.stop()
	err := t.rl.Close()
	t.echo()
	return err
}

// columnOne is a terminal whose cursor is in the first column when a line is asked for.
// The editor would ask the terminal where the cursor is, and wait for the answer for
// good, which some terminals never give; it is given here.
//
// It reads one byte at a time: what is typed ahead stays with the terminal, where
// [forgetTyped] can have it forgotten.
type columnOne struct {
	in, out *os.File
	asked   atomic.Bool
	reply   []byte
}

const whereIsIt = "\x1b[6n"

// Write implements io.Writer.
func (c *columnOne) Write(p []byte) (int, error) {
	if bytes.Equal(p, []byte(whereIsIt)) {
		c.asked.Store(true)
		return len(p), nil
	}
	return c.out.Write(p)
}

// Read implements io.Reader.
func (c *columnOne) Read(p []byte) (int, error) {
	if c.asked.CompareAndSwap(true, false) {
		c.reply = append(c.reply, "\x1b[1;1R"...)
	}
	if len(c.reply) > 0 {
		n := copy(p, c.reply)
		c.reply = c.reply[n:]
		return n, nil
	}
	if len(p) > 1 {
		p = p[:1]
	}
	return c.in.Read(p)
}

// readable makes a line of the past fit to be edited: one without what cannot be seen.
func readable(line string) string { return skill.CleanText(line, 64<<10) }
