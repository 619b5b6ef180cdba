package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"openskill/internal/musttest"
)

// terminalScreen is what a terminal shows of the bytes that it was sent: as much of a
// VT100 as the chat uses, with characters of two columns. Lines that leave it at its top
// are kept. Whatever it does not know is a failure: nothing else may be sent.
type terminalScreen struct {
	columns  int
	lines    [][]string // cells; "" is the right half of a character of two columns
	row, col int
	full     bool // the last column is written, and the next character begins a line
	unknown  []string
	rest     string // a sequence whose end is not there yet
}

func newTerminalScreen(columns int) *terminalScreen {
	return &terminalScreen{columns: columns, lines: [][]string{nil}}
}

func (s *terminalScreen) newLine() {
	if s.row++; s.row == len(s.lines) {
		s.lines = append(s.lines, nil)
	}
	s.full = false
}

func (s *terminalScreen) put(r rune) {
	w := runeColumns(r)
	if w == 0 {
		if l := s.lines[s.row]; s.col > 0 && s.col <= len(l) {
			l[s.col-1] += string(r)
		}
		return
	}
	if s.full || s.col+w > s.columns {
		s.newLine()
		s.col = 0
	}
	l := s.lines[s.row]
	for len(l) < s.col+w {
		l = append(l, " ")
	}
	l[s.col] = string(r)
	if w == 2 {
		l[s.col+1] = ""
	}
	s.lines[s.row] = l
	if s.col += w; s.col == s.columns {
		s.col, s.full = s.columns-1, true
	}
}

// write takes bytes as they come.
func (s *terminalScreen) write(b string) {
	b = s.rest + b
	s.rest = ""
	for len(b) > 0 {
		if !utf8.FullRuneInString(b) {
			s.rest = b
			return
		}
		r, n := utf8.DecodeRuneInString(b)
		if r == 0x1b {
			end := strings.IndexFunc(b[min(2, len(b)):], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
			if end < 0 {
				s.rest = b
				return
			}
			n = 2 + end + 1
			s.escape(b[1:n])
			b = b[n:]
			continue
		}
		b = b[n:]
		switch {
		case r == '\n':
			s.newLine()
		case r == '\r':
			s.col, s.full = 0, false
		case r == '\b':
			s.col, s.full = max(s.col-1, 0), false
		case r == 7: // a bell
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			s.unknown = append(s.unknown, strconv.QuoteRune(r))
		default:
			s.put(r)
		}
	}
}

func (s *terminalScreen) escape(seq string) {
	kind, arg := seq[len(seq)-1], strings.TrimPrefix(seq[:len(seq)-1], "[")
	n, _ := strconv.Atoi(arg)
	if seq[0] != '[' {
		kind = 0
	}
	switch kind {
	case 'm':
		return // colours
	case 'K': // to the end of the line
		s.cut()
	case 'J': // to the end of the screen
		s.cut()
		s.lines = s.lines[:s.row+1]
	case 'A':
		s.row = max(s.row-max(n, 1), 0)
	case 'G':
		s.col = max(n, 1) - 1
	default:
		s.unknown = append(s.unknown, strconv.Quote("\x1b"+seq))
	}
	s.full = false
}

func (s *terminalScreen) cut() {
	if l := s.lines[s.row]; len(l) > s.col {
		s.lines[s.row] = l[:s.col]
	}
}

func (s *terminalScreen) String() string {
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(strings.TrimRight(strings.Join(l, ""), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// person is one at a terminal with the program.
type person struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	done chan error

	mu     sync.Mutex
	screen *terminalScreen
	raw    strings.Builder
	news   chan struct{}
}

// sits starts openskill at a terminal of so many columns.
func sits(t *testing.T, columns uint16, env []string, args ...string) *person {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "openskill", args...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=", "TZ=UTC", "OPENSKILL_STATE_DIR="+t.TempDir())
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = t.TempDir()
	tty := musttest.Get(pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: columns}))(t)
	p := &person{t: t, cmd: cmd, tty: tty, done: make(chan error, 1), screen: newTerminalScreen(int(columns)), news: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			p.mu.Lock()
			p.raw.Write(b[:n])
			p.screen.write(string(b[:n]))
			p.mu.Unlock()
			select {
			case p.news <- struct{}{}:
			default:
			}
			if err != nil { // the program has gone
				return
			}
		}
	}()
	go func() {
		err := cmd.Wait()
		<-read
		p.done <- err
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = tty.Close()
	})
	return p
}

// types types.
func (p *person) types(s string) {
	p.t.Helper()
	musttest.Get(p.tty.WriteString(s))(p.t)
}

// What a test waits for has long happened when this is over.
const longWait = 60 * time.Second

// sees waits until the screen ends with a text, but for spaces; or holds it, if it
// begins with "…".
func (p *person) sees(want string) {
	p.t.Helper()
	within, anywhere := strings.CutPrefix(want, "…")
	p.waits(want, func(now string) bool {
		return anywhere && strings.Contains(now, within) || !anywhere && strings.HasSuffix(now, want)
	})
}

// does types a line, and waits until the screen ends with a text and another prompt.
func (p *person) does(line, then string) {
	p.t.Helper()
	p.mu.Lock()
	before := len(strings.TrimRight(p.screen.String(), " \n"))
	p.mu.Unlock()
	p.types(line + "\r")
	then += "\n>"
	p.waits(then, func(now string) bool { return len(now) > before+len(line) && strings.HasSuffix(now, then) })
}

func (p *person) waits(want string, seen func(screen string) bool) {
	p.t.Helper()
	late := time.After(longWait)
	for {
		p.mu.Lock()
		now := strings.TrimRight(p.screen.String(), " \n")
		p.mu.Unlock()
		if seen(now) {
			return
		}
		select {
		case <-p.news:
		case <-late:
			p.t.Fatalf("%q is not seen:\n%s", want, now)
		}
	}
}

// leaves waits for the end of the program, which wants this exit code, and gives all that
// was on the screen.
func (p *person) leaves(code int) string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(longWait):
		p.t.Fatalf("the program does not end:\n%s", p.screen)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d:\n%s", got, code, p.screen)
	}
	const usual = unix.ECHO | unix.ICANON | unix.ISIG
	if mode, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS); err != nil || mode.Lflag&usual != usual {
		p.t.Errorf("the terminal is not as it was: %v, %v", mode, err)
	}
	if len(p.screen.unknown) > 0 {
		p.t.Errorf("the terminal was sent %v", p.screen.unknown)
	}
	return p.screen.String()
}
