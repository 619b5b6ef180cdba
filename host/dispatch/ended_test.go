package dispatch

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// TestWatch holds that every call is told of once, before its caller is answered, with
// what is so of the skill only where there is one.
func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		request skill.Request
		owner   string
		want    string
	}{
		"a success":         {request: ask("stats", "{}"), want: `local known:true of:"" stats ""`},
		"an upload":         {request: ask("stats", "{}"), owner: "acme", want: `local known:true of:"acme" stats ""`},
		"a wrong input":     {request: ask("stats", "[]"), want: `local known:true of:"" stats "INVALID_ARGUMENT"`},
		"no such skill":     {request: ask("nothing", "{}"), want: `local known:false of:"" nothing "NOT_FOUND"`},
		"one that is off":   {request: ask("off", "{}"), want: `local known:true of:"" off "NOT_FOUND"`},
		"whatever is asked": {request: ask("\x1b[0m", "{}"), want: `local known:false of:"" [0m "NOT_FOUND"`},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			var results []*skill.Result
			h := open(t, func(o *Options) {
				if c.owner != "" {
					asUploads(o, c.owner)
				}
				o.Watch = func(e *Ended) {
					code := skill.Code("")
					if e.Result.Error != nil {
						code = e.Result.Error.Code
					}
					if e.Took < 0 || e.Began.IsZero() {
						t.Errorf("began %s, took %s", e.Began, e.Took)
					}
					got = append(got, fmt.Sprintf("%s known:%v of:%q %s %q", e.Principal.ID, e.Known, e.Owner, e.Result.SkillID, code))
					results = append(results, e.Result)
				}
			})
			h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 2}`)})
			r := h.Invoke(context.Background(), skill.Local(), c.request)
			if diff := cmp.Diff([]string{c.want}, got); diff != "" {
				t.Fatal(diff)
			}
			if results[0] != r {
				t.Error("what was told is not what is answered")
			}
		})
	}
}
