package hostile

import (
	"context"
	"fmt"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// The promises of docs/security.md, which each case is counted to.
const (
	Contained  = 1 + iota // nothing is read or changed that was not granted
	Ends                  // every run ends in time
	Responsive            // others are served meanwhile
	Bounded               // memory stays within its limit
	Admission             // uploads are judged within bounds
	Durable               // what was acknowledged stays
	Real                  // real skills are not refused
)

// Case is one thing that a stranger does, and what may come of it.
type Case struct {
	Name    string // its number, and what it does; unique
	Promise int    // one of the constants above
	Limit   string // what must hold it, in a few words

	// Upload makes what is sent. It is made anew each time, since some are large.
	Upload func() *Upload

	// Refused are the codes that the upload may be refused with; nil: it must be
	// admitted. With Ends beside it either may happen; without, it must be refused, by a
	// host that admits without looking inside when it is called.
	Refused []skill.Code
	// Ends are the codes that a call may end with, "" for success; nil, where Refused is
	// nil: any that says something about the guest, so neither INTERNAL nor WORKER_CRASHED.
	Ends []skill.Code
	// Data is what a successful call must answer, as JSON; "": anything.
	Data string

	// Limits are those of the manifest; zero fields are the host's defaults.
	Limits skill.Limits

	// Input makes the input of the i-th call; nil: an empty object.
	Input func(i int) []byte

	Calls  int           // how often it is called by each tenant; 0: once
	AtOnce int           // how many of them at a time; 0: one
	Two    bool          // a second tenant uploads and calls the same beside the first
	Leave  time.Duration // the caller leaves after this time; 0: it stays
	Wears  bool          // it takes as much memory as it can get: the peak is compared with its limit

	// Meanwhile is done to the planted folder while the case is called; nil: nothing.
	Meanwhile func(ctx context.Context, planted string)
	// Needs is the runner without which the case says nothing; "": wasm:wasi.
	Needs skill.Kind
}

// Upload is what a stranger sends: one of an archive, and a module with its manifest.
type Upload struct {
	ID       skill.ID // that the manifest gives, where there is one
	Archive  []byte   // zip or tar.gz
	Module   []byte
	Manifest []byte
}

// Version is the version of every skill here.
const Version = "0.1.0"

// All gives the cases, in the order of their numbers.
func All() []Case {
	var all []Case
	for _, part := range [][]Case{modules(), compiler(), execution(), results(), files(), isolation(), network(), plugins(), archives(), manifests(), realSkills()} {
		all = append(all, part...)
	}
	return all
}

// ID is the id of the case's skill: its name in the letters of ids.
func (c *Case) ID() skill.ID { return idOf(c.Name) }

func idOf(name string) skill.ID {
	var b strings.Builder
	b.WriteString("hostile")
	gap := true
	for _, r := range strings.ToLower(name) {
		if r < 'a' && (r < '0' || r > '9') || r > 'z' {
			gap = true
			continue
		}
		if gap {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
	}
	s := b.String()
	if len(s) > maxID {
		s = s[:maxID-9] + "_" + fmt.Sprintf("%08x", hash(s))
	}
	return skill.ID(s)
}

const maxID = 64

// hash tells long names apart (FNV-1a).
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// entry is the file that a skill of this package begins with.
const entry = "main.wasm"

// manifest writes that of a case.
func (c *Case) manifest(runtime, entry string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "id: %s\nversion: %s\ndescription: A hostile case that a host must survive.\n", c.ID(), Version)
	fmt.Fprintf(&b, "type: wasm\nruntime: %s\nentry: %s\npermissions: {data: read, scratch: true}\n", runtime, entry)
	j := c.Limits.JSON()
	var limits []string
	for _, l := range j.Fields() {
		if *l.Value > 0 {
			limits = append(limits, fmt.Sprintf("%s: %d", l.Name, *l.Value))
		}
	}
	if len(limits) > 0 {
		fmt.Fprintf(&b, "limits: {%s}\n", strings.Join(limits, ", "))
	}
	return []byte(b.String())
}

// ofModule is a case whose upload is one module.
func ofModule(c Case, module func() []byte) Case {
	c.Upload = func() *Upload {
		return &Upload{ID: c.ID(), Module: module(), Manifest: c.manifest("wasi", entry)}
	}
	return c
}

// ofPlugin is ofModule for a plug-in of Extism.
func ofPlugin(c Case, module func() []byte) Case {
	c.Upload = func() *Upload {
		return &Upload{ID: c.ID(), Module: module(), Manifest: c.manifest("extism", entry)}
	}
	return c
}

// ready gives a module that was made already.
func ready(module []byte) func() []byte { return func() []byte { return module } }
