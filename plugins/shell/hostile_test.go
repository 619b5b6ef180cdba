package shell

import (
	"strings"
	"testing"
	"time"

	"openskill/sdk/skill"
)

// ended stands for a script that ends by itself, with whatever exit code.
const ended skill.Code = "ended"

// Scripts that never end, or take all there is: each meets a limit, and the next call works.
func TestHostile(t *testing.T) {
	r := running(t, Options{})
	for name, c := range map[string]struct {
		text  string
		args  []string
		stdin string
		codes []skill.Code // one of these, or TIMEOUT on a slow machine; none: the script ends by itself
		out   string       // part of standard output
		err   string       // part of standard error
	}{
		"fork bomb":                 {text: ":(){ :|:& };:", codes: []skill.Code{skill.FuelExhausted, skill.MemoryLimit, skill.StackLimit, ended}},
		"fork bomb by bash -c":      {text: "export C='bash -c \"$C\" & bash -c \"$C\" & wait'; bash -c \"$C\"", codes: []skill.Code{skill.FuelExhausted, skill.MemoryLimit, skill.StackLimit, ended}},
		"jobs without an end":       {text: "while :; do sleep 100 & done", codes: []skill.Code{skill.OutputLimit, skill.FuelExhausted, skill.MemoryLimit, ended}},
		"yes to nothing":            {text: "yes | cat > /dev/null", codes: []skill.Code{skill.FuelExhausted}},
		"yes to a sum":              {text: "yes | sha256sum", codes: []skill.Code{skill.FuelExhausted, skill.MemoryLimit}},
		"yes":                       {text: "yes", codes: []skill.Code{skill.OutputLimit}},
		"a pipe that nobody reads":  {text: "yes | sleep 1000", codes: []skill.Code{skill.FuelExhausted}},
		"a pipe that ends early":    {text: "yes | head -1; echo \"${PIPESTATUS[0]}\"", out: "y\n141\n"},
		"functions":                 {text: "f() { f; }; f", codes: []skill.Code{skill.StackLimit, ended}},
		"functions, caught":         {text: "f() { f; }; (f) 2>/dev/null; echo \"after $?\"", codes: []skill.Code{skill.StackLimit, ended}},
		"substitutions":             {text: "f() { echo $(f); }; f", codes: []skill.Code{skill.FuelExhausted, skill.MemoryLimit, skill.StackLimit, ended}},
		"a script that runs itself": {text: "bash \"$0\"", codes: []skill.Code{skill.FuelExhausted, skill.MemoryLimit, skill.StackLimit, ended}},
		"exec loop":                 {text: "exec bash \"$0\"", codes: []skill.Code{skill.FuelExhausted, skill.MemoryLimit, skill.StackLimit, ended}},
		"nested brackets":           {text: "echo " + strings.Repeat("$(", 5000) + strings.Repeat(")", 5000), codes: []skill.Code{skill.StackLimit, ended}},
		"nested arithmetic":         {text: "echo $((" + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000) + "))", codes: []skill.Code{skill.StackLimit, ended}},
		"a string doubled":          {text: "x=x; while :; do x=$x$x; done", codes: []skill.Code{skill.MemoryLimit}},
		"an array without an end":   {text: "while :; do a+=(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx); done", codes: []skill.Code{skill.MemoryLimit, skill.FuelExhausted}},
		"a wide range":              {text: "for i in {1..4000000000}; do :; done", codes: []skill.Code{skill.MemoryLimit}},
		"a file without an end":     {text: "yes > file", codes: []skill.Code{skill.FuelExhausted, ended}},
		"awk without an end":        {text: "awk 'BEGIN { while (1) n++ }'", codes: []skill.Code{skill.FuelExhausted}},
		"sed without an end":        {text: "echo x | sed ':a; ba'", codes: []skill.Code{skill.FuelExhausted}},
		"jq without an end":         {text: "jq -n '[range(1e12)]'", codes: []skill.Code{skill.MemoryLimit, skill.FuelExhausted}},
		"jq, nested":                {text: "printf '[%.0s' {1..100000} | jq .", codes: []skill.Code{skill.StackLimit, ended}},
		"bc without an end":         {text: "echo '9^9^9' | bc", codes: []skill.Code{skill.MemoryLimit, skill.FuelExhausted, ended}},
		"a bomb of zeros":           {text: "head -c 1000000000 /dev/zero | gzip | zcat | wc -c", codes: []skill.Code{skill.MemoryLimit, skill.FuelExhausted, ended}},
		"an argument of 1 MiB":      {text: "echo ${#1}", args: []string{strings.Repeat("x", 1<<20)}, out: "1048576\n"},
		"100,000 arguments":         {text: "echo $#", args: strings.Split(strings.Repeat("x,", 1<<17), ","), out: "131073\n"},
		"a variable of 1 MiB":       {text: "export X=$(head -c 1048576 /dev/zero | tr '\\0' x); bash -c 'echo ${#X}'", out: "1048576\n"},
		"input of 1 MiB, unread":    {text: "echo done", stdin: strings.Repeat("x", 1<<20), out: "done\n"},
		"errors without an end":     {text: "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx >&2; done", codes: []skill.Code{skill.OutputLimit}},
		"output of twenty jobs":     {text: "for i in {1..20}; do yes $i & done; wait", codes: []skill.Code{ended, skill.OutputLimit, skill.MemoryLimit}},
		"other programs":            {text: "python3 -c 1; echo $?; node -e 1; echo $?; nc x; echo $?", out: "127\n127\n127\n", err: "python3: command not found"},
		"outside":                   {text: "cat /etc/shadow /proc/self/environ; cat ../../../../etc/hostname; ls /root; ls /", err: "No such file"},
		"sockets":                   {text: "exec 3<>/dev/tcp/127.0.0.1/80; echo $?", codes: []skill.Code{ended}},
	} {
		t.Run(name, func(t *testing.T) {
			call := script(t, c.text, c.args...)
			call.Stdin = []byte(c.stdin)
			call.Limits.Fuel, call.Limits.Memory, call.Limits.Timeout = 5e9, 64<<20, 20*time.Second
			if strings.Contains(c.text, "sleep") {
				call.Limits.Timeout = time.Second
			}
			reply := do(t, r, call)
			ok := len(c.codes) == 0 && reply.Code == "" || len(c.codes) > 0 && reply.Code == skill.Timeout
			for _, code := range c.codes {
				ok = ok || reply.Code == code || code == ended && reply.Code == ""
			}
			if !ok || !strings.Contains(string(reply.Stdout), c.out) || !strings.Contains(string(reply.Stderr), c.err) {
				t.Errorf("code %q (%s), exit code %d; want %q\n%.300s\n%.300s", reply.Code, reply.Message, reply.ExitCode, c.codes, reply.Stdout, reply.Stderr)
			}
			if reply := do(t, r, script(t, "echo still here")); string(reply.Stdout) != "still here\n" {
				t.Errorf("the next call: %q %s", reply.Stdout, reply.Message)
			}
		})
	}
}
