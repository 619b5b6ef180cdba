package skillbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"openskill/internal/measure"

	"openskill/sdk/skill"
)

// programScripts are scripts that start programs, and what programs that are started do.
var programScripts = map[string]string{
	"hi.sh": "echo hi\n",
	"hi.js": "console.log(require('path').basename('/a/1'))\n",
	// They say themselves how long the second start took: the first compiles.
	"jq.py":   timedStart(`["jq", ".a", "data.json"]`),
	"node.py": timedStart(`["node", "-e", "console.log(1)"]`),
	"bash.py": timedStart(`["bash", "-c", "echo hi"]`),
	"cut.sh":  "cat text.txt | cut -d' ' -f3 | wc -l\n",
	"tr.sh":   "cat text.txt | tr a-z A-Z | wc -c\n",
	"sort.sh": "grep 7 text.txt | cut -c1-4 | sort | uniq -c | wc -l\n",
}

// timedStart is a script of Python that starts a program.
func timedStart(args string) string {
	return `import json, subprocess, time
for _ in range(5):
    began = time.perf_counter_ns()
    out = subprocess.run(` + args + `, capture_output=True, text=True, check=True).stdout
    took = time.perf_counter_ns() - began
print(json.dumps({"result": out, "ns": took}))
`
}

// Programs are the cases of scripts of a shell and of Node, and of programs that scripts start,
// each in fresh state. missing says, a line each, what is not there.
func (b *Bench) Programs(ctx context.Context, n *Native, wanted func(suite, name string) bool) (cases []measure.Case, missing []string, err error) {
	folder := filepath.Join(b.o.CacheDir, "programs")
	if err := b.writePrograms(folder); err != nil {
		return nil, nil, err
	}
	add := func(name string, r skill.Runner, program, script string, times int, goals ...measure.Goal) {
		if !wanted("programs", name) {
			return
		}
		call := &skill.Call{SkillID: "bench", Folder: folder, Entry: "scripts/" + script, Trust: skill.Trusted, Script: true, Limits: limits}
		if _, _, err := once(ctx, r, call); err != nil {
			missing = append(missing, "programs/"+name+": "+err.Error())
			return
		}
		a := &agree{}
		itself := strings.HasSuffix(script, ".py")
		v := ours(r, call, a)
		if itself {
			v.Run = func(ctx context.Context) (time.Duration, error) {
				reply, _, err := once(ctx, r, call)
				if err != nil {
					return 0, err
				}
				return selfTimed(reply.Stdout, a)
			}
			v.Note = nil
		}
		v.Times, v.Goals = b.few(times, 2), goals
		c := measure.Case{Suite: "programs", Name: name, N: b.few(20, 2), Variants: []measure.Variant{v}}
		if path, err := exec.LookPath(program); err == nil && (!itself || n != nil) {
			starts := []string{path, filepath.Join(folder, "scripts", script)}
			if itself {
				starts = append([]string{n.Path, "-I", "-B"}, starts[1:]...)
			}
			native := measure.Variant{Name: "native " + program, Run: func(ctx context.Context) (time.Duration, error) {
				cmd := exec.CommandContext(ctx, starts[0], starts[1:]...)
				cmd.Dir = folder
				began := time.Now()
				out, err := cmd.Output()
				took := time.Since(began)
				if err != nil {
					return 0, fmt.Errorf("native %s: %w", script, err)
				}
				if itself {
					return selfTimed(out, a)
				}
				return took, a.with(out)
			}}
			c.Variants = []measure.Variant{native, v}
		}
		cases = append(cases, c)
	}
	add("a script of bash, echo hi", b.shell, "bash", "hi.sh", 20, measure.Median(time.Millisecond), measure.AtMost(1))
	add("a script of Node", b.js, "node", "hi.js", 20, measure.Median(time.Millisecond), measure.Faster(30))
	add("Python starts jq", b.python, "jq", "jq.py", 5, measure.Median(time.Millisecond))
	add("Python starts bash -c", b.python, "bash", "bash.py", 5, measure.Median(time.Millisecond))
	add("Python starts node -e", b.python, "node", "node.py", 5, measure.Median(time.Millisecond), measure.Faster(30))
	for _, script := range []string{"cut.sh", "tr.sh", "sort.sh"} {
		add("10 MB through "+strings.TrimSpace(programScripts[script]), b.shell, "bash", script, 1, measure.AtMost(10))
	}
	return cases, missing, nil
}

// writePrograms writes the scripts, and what they read.
func (b *Bench) writePrograms(folder string) error {
	var lines bytes.Buffer
	for i := 0; lines.Len() < 10<<20; i++ {
		fmt.Fprintf(&lines, "%d line %d of some words, and numbers like %d\n", i*7919%100_003, i, i*i)
	}
	err := errors.Join(os.MkdirAll(filepath.Join(folder, "scripts"), 0o700), os.WriteFile(filepath.Join(folder, "text.txt"), lines.Bytes(), 0o600),
		os.WriteFile(filepath.Join(folder, "data.json"), []byte(`{"a": 1}`), 0o600))
	for name, text := range programScripts {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, "scripts", name), []byte(text), 0o600))
	}
	return err
}
