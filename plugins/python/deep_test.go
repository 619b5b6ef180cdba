package python

import (
	"testing"

	"openskill/plugins/runnertest"
)

// TestDeepButHonest: source and data that people write, and that a native machine takes,
// are taken, and nesting without an end is an error that a script can catch.
func TestDeepButHonest(t *testing.T) {
	oneGuest(t)
	const text = `
import sys, json
big = sys.version_info >= (3, 15)
def compiled(source): compile(source, "x", "exec"); return True
elifs, calls, sums = (900, 900, 1500) if big else (100, 150, 300)
print(compiled("if x == 0: pass\n" + "".join(f"elif x == {i}: pass\n" for i in range(elifs))))
print(compiled("x" + ".f()" * calls), compiled("x" + " + x" * sums), compiled("x" + "[0]" * calls), compiled("'a'" + " + 'a'" * sums))
def nested(wrap, n):
    x = None
    for _ in range(n): x = wrap(x)
    return x
class Node:
    def __init__(self, next): self.next = next
for wrap in (lambda x: [x], lambda x: (x,), lambda x: {1: x}, Node): nested(wrap, 100_000)
print("freed")
def endless(call):
    try: call(); return "done"
    except RecursionError: return "RecursionError"
if big:
    print(endless(lambda: json.loads("[" * 10**6)), endless(lambda: repr(nested(lambda x: [x], 10**5))), endless(lambda: nested(lambda x: [x], 10**5) == nested(lambda x: [x], 10**5)))
    json.loads("[" * 7000 + "]" * 7000)
    def f(): f()
    print(endless(f), endless(lambda: compile("x" + "[0]" * 10_000, "x", "exec")))
`
	//nolint:dupword // values
	const want = "True\nTrue True True True\nfreed\n"
	//nolint:dupword // values
	ends := map[string]string{"slim": "RecursionError RecursionError RecursionError\nRecursionError RecursionError\n"}
	runners(t, []string{"slim", "python-3.12", "scientific"}, func(t *testing.T, r *Runner) {
		name := nameOf(r)
		ends["scientific"] = ends["slim"]
		c := script(t, text)
		c.Limits.Memory = 256 << 20
		reply, err := runnertest.Do(t.Context(), r, c)
		if err != nil || reply.Code != "" || string(reply.Stdout) != want+ends[name] {
			t.Errorf("%v %+v\n%s\n%s", err, reply.Code, reply.Stdout, reply.Stderr)
		}
	})
}
