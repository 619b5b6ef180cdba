package selftest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
)

// scripts are the G cases, which scripts of an Agent Skill do with processes and requests.
func (r *run) scripts() []step {
	var all []step
	for _, s := range hostile.Scripts() {
		all = append(all, step{s.Name, s.Promise, s.Limit, func(ctx context.Context, row *Row) { r.script(ctx, &s, row) }})
	}
	return all
}

// script runs one. A script that does nothing is run before, so that what all scripts of the
// language need is compiled and started.
func (r *run) script(ctx context.Context, s *hostile.Script, row *Row) {
	if r.o.Script == nil {
		row.Verdict, row.Happened = Skip, "scripts of this host cannot be run from here"
		return
	}
	r.o.Script(ctx, hostileTenant, hostile.ReadyScript(s.File), skill.Limits{Timeout: time.Minute})
	r.before = r.t.Usage(ctx)
	limits := s.RunLimits()
	was := r.watch.resetMemory()
	began := r.o.Now()
	res, reply := r.o.Script(ctx, hostileTenant, s.File, limits)
	took := r.o.Now().Sub(began)
	var code skill.Code
	if reply != nil {
		code = reply.Code
	} else if res.Error != nil {
		code = res.Error.Code
	}
	if reply == nil && code == skill.ToolInvocationError {
		row.Verdict, row.Happened = Skip, "its runtime is not ready here: "+res.Error.Message
		return
	}
	row.Measured.Calls, row.Measured.MS, row.Measured.OverMS = 1, ms(took), max(ms(took-limits.Timeout), 0)
	row.Happened = fmt.Sprintf("%s, %.0f ms", named(code), ms(took))
	if res.Meta.Processes != nil {
		row.Happened = happened(row.Happened, fmt.Sprintf("%d processes", res.Meta.Processes.Started))
	}
	r.said(row, res.Error)
	switch {
	case !ended(code, s.Ends):
		row.fault("the run ended with %s, want %s", named(code), names(s.Ends))
	case s.Prints != "" && string(reply.Stdout) != s.Prints:
		row.fault("it printed %.200q, want %q", reply.Stdout, s.Prints)
	}
	if reply != nil && strings.Contains(string(reply.Stdout)+string(reply.Stderr), hostile.ScriptSecret) {
		row.fault("its output has the value of a secret")
	}
	if over := took - limits.Timeout; over > r.o.scale(lateBound) {
		row.slow("the run ended %d ms after its deadline", over/time.Millisecond)
	}
	if peak := r.watch.peak(); was > 0 && peak > was+int64(r.o.Memory)+mayMemory {
		row.fault("the run took %.0f MiB, its limit is %.0f MiB", mb(peak-was), mb(int64(r.o.Memory)))
	}
}
