package wasi

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"openskill/wasm/guestfs"
)

// processRequest is what a guest asks of its process group; docs/runtimes.md has the table.
type processRequest struct {
	Op     string          `json:"op"`
	Args   []string        `json:"args"`
	Env    []string        `json:"env"`
	Dir    string          `json:"dir"`
	Stdin  json.RawMessage `json:"stdin"`
	Stdout json.RawMessage `json:"stdout"`
	Stderr json.RawMessage `json:"stderr"`
	PID    int             `json:"pid"`
	Block  *bool           `json:"block"` // nil: true
	Signal uint8           `json:"signal"`

	Read  []uint32 `json:"read"`
	Write []uint32 `json:"write"`
	Child *int     `json:"child"` // 0: any; nil: none
	MS    *float64 `json:"ms"`    // nil: without an end
}

// processFailure is an answer that says what is wrong.
type processFailure struct {
	Error   string `json:"error"` // the name of an errno
	Message string `json:"message"`
}

const (
	// maxArgs is how many bytes the arguments and the environment of a process may have
	// together, as Linux's have.
	maxArgs = 2 << 20
	// costProcess is charged for a process, in units of Config.Charge.
	costProcess = 1 << 20
)

// processes answers a request to the group.
func (w *World) processes(request []byte) ([]byte, guestfs.Errno) {
	if w.cfg.Process == nil {
		return nil, guestfs.EACCES
	}
	w.copied(len(request))
	var r processRequest
	d := json.NewDecoder(bytes.NewReader(request))
	d.DisallowUnknownFields()
	var answer any
	if d.Decode(&r) != nil || d.Decode(&struct{}{}) != io.EOF {
		answer = &processFailure{"EINVAL", "the request is not one JSON object with known fields"}
	} else {
		answer = w.processAnswer(&r)
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return nil, guestfs.EIO
	}
	w.copied(len(b))
	return b, 0
}

func (w *World) processAnswer(r *processRequest) any {
	self := w.cfg.Process
	switch r.Op {
	case "self":
		return map[string]any{"args": orNone(self.Args), "env": orNone(self.Env), "dir": self.Dir, "pid": max(self.ID, 1), "stdin": w.stdinKind()}
	case "start":
		return w.startProcess(r)
	case "wait":
		return w.waitProcess(r)
	case "kill":
		return w.killProcess(r)
	case "pipe":
		return w.makePipe()
	case "ready":
		return w.readyProcess(r)
	}
	return &processFailure{"EINVAL", "op is self, start, wait, kill, pipe or ready"}
}

// stdinKind says what a guest's standard input is.
func (w *World) stdinKind() string {
	d := w.fd(0)
	if d == nil {
		return "closed"
	}
	switch d.kind { //nolint:exhaustive // the rest is a file
	case isStdin:
		return "inherited"
	case isPipe:
		return "pipe"
	case isNull:
		return "null"
	}
	return "file"
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// group gives the process's group, and makes that of a first process that is alone.
func (w *World) group() *Group {
	p := w.cfg.Process
	if p.group == nil && w.cfg.Group != nil {
		w.cfg.Group(p)
		p.group.in, p.group.out = w.in, w.out
	}
	return p.group
}

var errNoProcesses = &processFailure{"EACCES", "this run may not start processes"}

// started is the answer to a start: the descriptors are the caller's ends of pipes.
type started struct {
	PID    int  `json:"pid"`
	Stdin  *int `json:"stdin,omitempty"`
	Stdout *int `json:"stdout,omitempty"`
	Stderr *int `json:"stderr,omitempty"`
}

func (w *World) startProcess(r *processRequest) any {
	size := 0
	for _, list := range [][]string{r.Args, r.Env} {
		for _, s := range list {
			size += len(s) + 1
			if strings.ContainsRune(s, 0) {
				return &processFailure{"EINVAL", "arguments and variables have no zero bytes"}
			}
		}
	}
	g := w.group()
	switch {
	case g == nil:
		return errNoProcesses
	case len(r.Args) == 0 || r.Args[0] == "":
		return &processFailure{"ENOENT", "no program is named"}
	case size > maxArgs:
		return &processFailure{"E2BIG", "the arguments and the environment are longer than 2 MiB"}
	}
	w.charge(costProcess)
	p := &Process{Args: r.Args, Env: r.Env, Dir: r.Dir, parent: w.cfg.Process, size: size}
	answer := &started{}
	ends, failed := w.streams(r, p, answer)
	if failed == nil {
		if errno := g.start(p); errno != 0 {
			failed = startFailure(errno, r.Args[0])
		}
	}
	if failed != nil {
		_ = release(p.std[:])
		for _, n := range ends {
			_ = w.closeFD(&w.fds[n])
		}
		return failed
	}
	answer.PID = p.ID
	return answer
}

func startFailure(errno guestfs.Errno, name string) *processFailure {
	switch errno { //nolint:exhaustive // the rest is EIO
	case guestfs.ENOENT:
		return &processFailure{"ENOENT", name + ": command not found"}
	case guestfs.EAGAIN:
		return &processFailure{"EAGAIN", "the run has too many processes"}
	case guestfs.E2BIG:
		return &processFailure{"E2BIG", "the arguments and the environments of the run's processes are longer than 8 MiB"}
	case guestfs.EACCES:
		return &processFailure{"EACCES", name + ": permission denied"}
	case guestfs.ENOEXEC:
		return &processFailure{"ENOEXEC", name + ": no program that can be run here"}
	}
	return &processFailure{"EIO", name + ": could not be started"}
}

// streams gives a process its standard streams, and the caller the other ends of pipes.
func (w *World) streams(r *processRequest, p *Process, answer *started) (ends []int, failed *processFailure) {
	places := []struct {
		asked json.RawMessage
		end   **int
	}{{r.Stdin, &answer.Stdin}, {r.Stdout, &answer.Stdout}, {r.Stderr, &answer.Stderr}}
	for i, place := range places {
		var name string
		var fd uint64
		switch {
		case place.asked == nil:
			fd = uint64(i)
		case json.Unmarshal(place.asked, &name) == nil:
		case json.Unmarshal(place.asked, &fd) == nil:
		default:
			return ends, &processFailure{"EINVAL", "a stream is a number, pipe, null, or stdout for stderr"}
		}
		right := uint8(canWrite)
		if i == 0 {
			right = canRead
		}
		switch name {
		case "":
			d := w.fd(fd)
			if d == nil || fd > 1<<31 || d.kind == isDir || d.rights&right == 0 {
				return ends, &processFailure{"EBADF", "a stream names a descriptor that is not open for it"}
			}
			p.std[i] = *d
			p.std[i].talk, p.std[i].preopen = exchange{}, false
			retain(p.std[i : i+1])
		case "null":
			p.std[i] = descriptor{kind: isNull, rights: right}
		case "stdout":
			if i != 2 {
				return ends, &processFailure{"EINVAL", "only stderr can be stdout"}
			}
			p.std[2] = p.std[1]
			retain(p.std[2:])
		case "pipe":
			n, ok := w.freeFD()
			if !ok {
				return ends, &processFailure{"EMFILE", "too many descriptors are open"}
			}
			reads, writes := newPipe(w.cfg.Process.group)
			mine, theirs := writes, reads
			if i > 0 {
				mine, theirs = reads, writes
			}
			p.std[i] = descriptor{kind: isPipe, rights: right, h: theirs}
			w.setFD(n, descriptor{kind: isPipe, rights: (canRead | canWrite) &^ right, h: mine})
			ends = append(ends, n)
			*place.end = &n
		default:
			return ends, &processFailure{"EINVAL", "a stream is a number, pipe, null, or stdout for stderr"}
		}
	}
	return ends, nil
}

func (w *World) makePipe() any {
	if w.group() == nil {
		return errNoProcesses
	}
	r, ok := w.freeFD()
	if !ok {
		return &processFailure{"EMFILE", "too many descriptors are open"}
	}
	reads, writes := newPipe(w.cfg.Process.group)
	w.setFD(r, descriptor{kind: isPipe, rights: canRead, h: reads})
	n, ok := w.freeFD()
	if !ok {
		_ = w.closeFD(&w.fds[r])
		_ = writes.drop()
		return &processFailure{"EMFILE", "too many descriptors are open"}
	}
	w.setFD(n, descriptor{kind: isPipe, rights: canWrite, h: writes})
	return map[string]int{"read": r, "write": n}
}

// ended is the answer to a wait. PID is 0 where nobody has ended yet.
type ended struct {
	PID    int     `json:"pid"`
	Exit   *uint32 `json:"exit,omitempty"`
	Signal uint8   `json:"signal,omitempty"`
}

func (w *World) waitProcess(r *processRequest) any {
	self := w.cfg.Process
	g := self.group
	if g == nil || !g.hasChild(self, r.PID) {
		return &processFailure{"ECHILD", "there is no such child process"}
	}
	p := g.reap(self, r.PID)
	if p == nil && (r.Block == nil || *r.Block) {
		w.await(func() bool { return g.find(self, r.PID) >= 0 })
		p = g.reap(self, r.PID)
	}
	switch {
	case p == nil:
		return &ended{}
	case p.exit.Signal != 0:
		return &ended{PID: p.ID, Signal: p.exit.Signal}
	}
	return &ended{PID: p.ID, Exit: &p.exit.Code}
}

// hasChild reports whether a process has a child that lives or was not waited for.
func (g *Group) hasChild(of *Process, pid int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range append(g.order[:len(g.order):len(g.order)], g.ended...) {
		if p.parent == of && (pid <= 0 || p.ID == pid) {
			return true
		}
	}
	return false
}

// find gives the place of a child that has ended; negative: there is none. G.mu is held.
func (g *Group) find(of *Process, pid int) int {
	for i, p := range g.ended {
		if p.parent == of && (pid <= 0 || p.ID == pid) {
			return i
		}
	}
	return -1
}

// reap takes a child that has ended; nil: there is none.
func (g *Group) reap(of *Process, pid int) *Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := g.find(of, pid)
	if i < 0 {
		return nil
	}
	p := g.ended[i]
	g.ended = append(g.ended[:i], g.ended[i+1:]...)
	return p
}

func (w *World) killProcess(r *processRequest) any {
	self := w.cfg.Process
	if r.PID == max(self.ID, 1) && r.Signal != 0 {
		w.end(ReasonExit, 128+uint32(r.Signal))
	}
	if g := self.group; g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, p := range append(g.order[:len(g.order):len(g.order)], g.ended...) {
			if p.ID == r.PID && p.ID > 1 {
				if p.exit == nil && p.signal == 0 {
					p.signal = r.Signal
				}
				return struct{}{}
			}
		}
	}
	return &processFailure{"ESRCH", "there is no such process"}
}
