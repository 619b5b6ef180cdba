package skillbench

import (
	"context"
	"path/filepath"
	"time"

	"openskill/internal/measure"

	"openskill/sdk/skill"
)

// text is the input of the small skills.
const text = `{"text":"The quick brown fox jumps over the lazy dog, and the dog does not mind."}`

// echo has stdlib.py do nothing with what it imports.
const echo = `{"op":"echo","text":"hello"}`

// numbers are packages that only the scientific runtime has.
var numbers = []string{"numpy", "pandas"}

// Image are the cases of whole calls, in the process, each in fresh state. missing
// says, a line each, what is not there.
func (b *Bench) Image(ctx context.Context, n *Native, wanted func(suite, name string) bool) (cases []measure.Case, missing []string) {
	add := func(name string, r skill.Runner, call *skill.Call, baseline func(*agree) measure.Variant, times int, goals ...measure.Goal) {
		if !wanted("image", name) {
			return
		}
		a := &agree{}
		// A call that is not measured compiles the module, or says what is missing.
		if _, _, err := once(ctx, r, call); err != nil {
			missing = append(missing, "image/"+name+": "+err.Error())
			return
		}
		v := ours(r, call, a)
		v.Times, v.Goals = b.few(times, 20), goals
		c := measure.Case{Suite: "image", Name: name, N: b.few(50, 5), Variants: []measure.Variant{v}}
		if baseline != nil && n != nil {
			c.Variants = []measure.Variant{baseline(a), v}
		}
		cases = append(cases, c)
	}
	started := func(name, input string) func(*agree) measure.Variant {
		if n == nil {
			return nil
		}
		return func(a *agree) measure.Variant {
			return n.Started(filepath.Join(b.o.Scripts, name), stdin(input), a.with)
		}
	}
	add("a Python skill, echo", b.python, b.script("stdlib.py", echo), started("stdlib.py", echo), 40,
		measure.Median(500*time.Microsecond), measure.P99(2*time.Millisecond), measure.Faster(50))
	add("a Python skill that uses its imports", b.python, b.script("stdlib.py", text), started("stdlib.py", text), 40, measure.Faster(60))
	unit := filepath.Join(b.o.Skills, "unit-converter")
	args := []string{"--value", "26.2", "--factor", "1.60934"}
	program := &skill.Call{
		SkillID: "unit-converter", Folder: unit, Entry: "scripts/convert.py", Trust: skill.Trusted, Script: true, Args: args, Limits: limits,
	}
	add("a script of an Agent Skill, with arguments", b.python, program, func(a *agree) measure.Variant {
		return n.Started(filepath.Join(unit, "scripts", "convert.py"), nil, a.with, args...)
	}, 40, measure.Median(3*time.Millisecond))
	add("numpy and pandas, echo", b.python, b.script("frame.py", `{"op":"echo"}`, numbers...), nil, 20, measure.Median(1500*time.Microsecond))
	add("numpy and pandas, groupby", b.python, b.script("frame.py", `{"op":"groupby"}`, numbers...), nil, 5, measure.Median(8*time.Millisecond))
	add("numpy and pandas, groupby, rehearsed", b.python, b.script("rehearsed.py", `{"op":"groupby"}`, numbers...), nil, 5, measure.Median(8*time.Millisecond))
	add("a Go command, log_transform", b.wasi, &skill.Call{
		SkillID: "log_transform", Folder: filepath.Join(b.o.Skills, "log_transform"), Entry: "log_transform.wasm", Trust: skill.Builtin,
		Stdin: stdin(`{"input_path":"./data/logs/app.log","format":"text"}`), Limits: limits,
		Grants: skill.Grants{Data: b.o.Data, Scratch: true},
	}, nil, 40, measure.Median(500*time.Microsecond))
	add("a JavaScript skill", b.js, b.script("quick.js", text), nil, 40, measure.Median(200*time.Microsecond))
	return cases, missing
}
