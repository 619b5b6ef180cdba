package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"openskill/internal/measure"

	"openskill/host/app/config"
	"openskill/lab/httpbench"
	"openskill/lab/skillbench"
	"openskill/sdk/skill"
)

// nestedCalls is how many calls of echo the code makes that is measured; nestedCode gives the time of the middle one.
const nestedCalls = 90

var nestedCode = fmt.Sprintf(`
import time
from skills import echo
times = []
for _ in range(%d):
    began = time.perf_counter_ns()
    echo(text="hello")
    times.append(time.perf_counter_ns() - began)
sorted(times)[len(times) // 2]
`, nestedCalls)

// benchCode measures code of a caller over HTTP against starting python3, and against a Python skill of the
// same host; and a skill that code calls.
func (a *cli) benchCode(ctx context.Context, s *config.Settings, o *benchOptions, n *skillbench.Native) (rows []measure.Row, err error) {
	const started, beside, nested = "code, against python3", "code, against a Python skill", "a skill that code calls"
	if n == nil || !o.wanted("http", started) && !o.wanted("http", beside) && !o.wanted("http", nested) {
		return nil, nil
	}
	skills, err := pythonSkills()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(skills, "print.py")
	if err := errors.Join(copyUnlimited(filepath.Join(s.SkillsDir, "echo"), filepath.Join(skills, "echo")), os.WriteFile(program, []byte("print(1)\n"), 0o600)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(skills))
	}
	_, addr, stop, err := a.serveSkills(ctx, s, skills, map[skill.ID]string{
		skill.RunCode: `{"language":"python","code":"print(1)"}`, sandboxed: textInput, "echo": `{"text":"hello"}`,
	})
	if err != nil {
		a.say("http: %v", err)
		return nil, nil
	}
	defer stop()
	requests := 300
	if o.quick {
		requests = 5
	}
	call := func(name, path, body string, goals ...measure.Goal) measure.Variant {
		return measure.Variant{
			Name: name, Goals: goals, Note: func() string { return fmt.Sprintf("time of a call, of %d a run, one client", requests) },
			Run: func(ctx context.Context) (time.Duration, error) {
				d, err := httpbench.Send(ctx, addr, path, body, 1, requests)
				return d / time.Duration(requests), err
			},
		}
	}
	const path, print1 = "/code:run", `{"language":"python","code":"print(1)"}`
	native := n.Started(program, nil, nil)
	native.Times = 5
	var cases []measure.Case
	if o.wanted("http", started) {
		cases = append(cases, measure.Case{Suite: "http", Name: started, N: 7, Variants: []measure.Variant{native, call("run_code, print(1)", path, print1, measure.Faster(40))}})
	}
	if o.wanted("http", beside) {
		cases = append(cases, measure.Case{Suite: "http", Name: beside, N: 7, Variants: []measure.Variant{
			call("a Python skill", "/skills/"+sandboxed+":invoke", `{"input":`+textInput+`}`), call("run_code, print(1)", path, print1, measure.AtMost(1.2)),
		}})
	}
	if o.wanted("http", nested) {
		body, err := json.Marshal(map[string]string{"language": "python", "code": nestedCode})
		if err != nil {
			return nil, err
		}
		cases = append(cases, measure.Case{Suite: "http", Name: nested, N: 7, Variants: []measure.Variant{{
			Name: "echo, from Python", Goals: []measure.Goal{measure.Median(400 * time.Microsecond)},
			Note: func() string { return fmt.Sprintf("the middle of %d calls, by the code's clock", nestedCalls) },
			Run: func(ctx context.Context) (time.Duration, error) {
				answer, err := httpbench.Answer(ctx, addr, path, string(body))
				if err != nil {
					return 0, err
				}
				var r struct{ Data struct{ Value int64 } }
				err = json.Unmarshal(answer, &r)
				return time.Duration(r.Data.Value), err
			},
		}}})
	}
	return a.measure(ctx, cases)
}
