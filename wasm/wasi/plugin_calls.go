package wasi

import "strings"

// takeInput reads what is left of standard input into a block, once.
func (w *World) takeInput() {
	g := &w.plug
	if g.asked {
		return
	}
	g.asked = true
	var all []byte
	if w.in.direct != nil {
		all = make([]byte, 0, w.in.available()+1)
	}
	buf := make([]byte, min(max(w.in.available()+1, 512), chunk))
	for {
		n, errno := w.in.read(w.ctx, buf, true)
		w.copied(n)
		if n == 0 || errno != 0 {
			w.checkContext()
			break
		}
		all = append(all, buf[:n]...)
		if w.cfg.Hold != nil && uint64(len(all)) > w.cfg.Hold(g.mem.Held()) {
			w.end(ReasonMemory, 0)
		}
	}
	g.input = span{w.put(all), uint64(len(all))}
}

func (w *World) pluginInputLength([]uint64) uint64 {
	w.takeInput()
	return w.plug.input.n
}

func (w *World) pluginInputOffset([]uint64) uint64 {
	w.takeInput()
	return w.plug.input.at
}

// pluginInput8 is lean: a plug-in knows the length of its input, so it has asked for that.
func (w *World) pluginInput8(p []uint64) uint64 {
	in := w.plug.input
	if p[0] >= in.n {
		w.fault(outside)
	}
	v, _ := w.plug.mem.Load8(in.at + p[0])
	return uint64(v)
}

func (w *World) pluginInput64(p []uint64) uint64 {
	in := w.plug.input
	if p[0] >= in.n || in.n-p[0] < 8 {
		w.fault(outside)
	}
	v, _ := w.plug.mem.Load64(in.at + p[0])
	return v
}

// part is a span that a plug-in names; one of no bytes is nowhere.
func (w *World) part(p []uint64) span {
	if p[1] == 0 {
		return span{}
	}
	if _, ok := w.plug.mem.Range(p[0], p[1]); !ok {
		w.fault(outside)
	}
	return span{p[0], p[1]}
}

func (w *World) pluginInputSet(p []uint64) uint64 {
	w.plug.asked, w.plug.input = true, w.part(p)
	return 0
}

// pluginOutputSet says which bytes are the output. What is in them when the plug-in
// returns counts.
func (w *World) pluginOutputSet(p []uint64) uint64 {
	out, left := w.part(p), uint64(max(w.out[0].left, 0))
	w.plug.output = span{out.at, min(out.n, left)} // what fits is kept
	if out.n > left {
		w.end(ReasonOutputLimit, 0)
	}
	return 0
}

func (w *World) pluginOutputLength([]uint64) uint64 { return w.plug.output.n }
func (w *World) pluginOutputOffset([]uint64) uint64 { return w.plug.output.at }

func (w *World) pluginErrorSet(p []uint64) uint64 {
	w.plug.failure = p[0]
	return 0
}

func (w *World) pluginErrorGet([]uint64) uint64 { return w.plug.failure }

// name is the text of a block that names something; false where it is too long for that.
func (w *World) name(at uint64) (string, bool) {
	if w.plug.mem.Length(at) > maxVars {
		return "", false
	}
	return string(w.block(at)), true
}

// pluginConfigGet gives a block with the value of a variable of the environment, which is
// what the operator grants by name.
func (w *World) pluginConfigGet(p []uint64) uint64 {
	name, ok := w.name(p[0])
	for _, v := range w.cfg.Env {
		if key, value, _ := strings.Cut(v, "="); ok && key == name {
			return w.put([]byte(value))
		}
	}
	return 0
}

// maxVars is how many bytes variables and their names may have together, with what
// keeping one costs.
const (
	maxVars = 1 << 20
	varCost = 64
	tooMuch = "more than 1 MiB of variables of an Extism plug-in"
)

func (w *World) pluginVarGet(p []uint64) uint64 {
	name, _ := w.name(p[0])
	w.plug.mem.Free(p[0]) // as Extism's hosts do
	return w.put(w.plug.vars[name])
}

func (w *World) pluginVarSet(p []uint64) uint64 {
	g := &w.plug
	name, ok := w.name(p[0])
	value := w.block(p[1])
	if !ok {
		w.fault(tooMuch)
	}
	size := 0
	if old, ok := g.vars[name]; ok {
		size -= len(name) + len(old) + varCost
	}
	if p[1] == 0 {
		delete(g.vars, name)
	} else {
		size += len(name) + len(value) + varCost
		if g.varBytes+size > maxVars {
			w.fault(tooMuch)
		}
		if g.vars == nil {
			g.vars = map[string][]byte{}
		}
		g.vars[name] = append([]byte(nil), value...)
	}
	g.varBytes += size
	g.mem.Free(p[0])
	g.mem.Free(p[1])
	return 0
}

// The levels of logs.
const (
	logTrace = iota
	logDebug
	logInfo
	logWarn
	logError
)

// pluginLog writes a message, a line of standard error, and frees its block as Extism's
// hosts do. What is below logInfo is dropped.
func pluginLog(level int, name string) func(w *World, p []uint64) uint64 {
	return func(w *World, p []uint64) uint64 {
		if level >= logInfo {
			w.logLine(name, w.block(p[0]))
		}
		w.plug.mem.Free(p[0])
		return 0
	}
}

// logLine writes a line of standard error. What is more than it has room for is cut before it
// is copied, but for a byte, so that it is still too much: a message may have all the memory
// of a run.
func (w *World) logLine(level string, message []byte) {
	if left := max(w.out[1].left, 0); int64(len(message)) > left {
		message = message[:left+1]
	}
	line := append(append(append(make([]byte, 0, len(level)+len(message)+3), level...), ": "...), message...)
	w.copied(len(line))
	if _, over, _ := w.out[1].write(append(line, '\n')); over { // one that cannot be written is lost
		w.end(ReasonOutputLimit, 0)
	}
}
