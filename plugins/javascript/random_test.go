package javascript

import "testing"

// A script's start is frozen, and with it the state of Math.random: calls must not
// see the same numbers, whichever way they read their input.
func TestChanceOfImages(t *testing.T) {
	run := running(t)
	const draw = "print(Math.random(), 1 - Math.random());"
	for name, text := range map[string]string{
		"string":             "std.in.readAsString();" + draw,
		"line":               "std.in.getline();" + draw,
		"byte":               "std.in.getByte();" + draw,
		"buffer":             "std.in.read(new ArrayBuffer(4), 0, 4);" + draw,
		"whole buffer":       "std.in.readAsArrayBuffer();" + draw,
		"by number":          "std.fdopen(0, 'r').getline();" + draw,
		"by the system":      "os.read(0, new ArrayBuffer(4), 0, 4);" + draw,
		"by a module":        "import * as o from 'os'; o.read(0, new ArrayBuffer(4), 0, 4);" + draw,
		"by its name":        "import { read } from 'os'; read(0, new ArrayBuffer(4), 0, 4);" + draw,
		"by module std":      "import { in as input } from 'std'; input.getline();" + draw,
		"by module qjs:std":  "import * as s from 'qjs:std'; s.in.getline();" + draw,
		"handled":            "os.setReadHandler(0, () => { os.setReadHandler(0, null);" + draw + "});",
		"handled, and timer": "setTimeout(() => {" + draw + "os.setReadHandler(0, null); }, 5); os.setReadHandler(0, () => { os.setReadHandler(0, null); });",
		"a name of its own":  "const random = Math.random; random(); std.in.getline(); print(random());",
		"after other files":  "std.open('/skill/main.js', 'r').getline(); os.read(os.open('/skill/main.js', os.O_RDONLY), new ArrayBuffer(4), 0, 4); std.in.getline();" + draw,
	} {
		t.Run(name, func(t *testing.T) {
			c := script(t, text)
			c.Stdin = []byte("7 and more\nand more")
			seen := map[string]bool{}
			for range 10 {
				reply := run(t, c)
				got := string(reply.Stdout)
				if seen[got] || got == "" || reply.ExitCode != 0 {
					t.Fatalf("%q twice, or not at all\n%s", got, reply.Stderr)
				}
				seen[got] = true
			}
		})
	}
}

// What a script puts in the place of Math.random stays, and nothing of how the first
// read is known does.
func TestSeedsAreKept(t *testing.T) {
	c := script(t, `
import * as module from 'qjs:os';
let n = 0;
Math.random = () => ++n;
Math.random();
const before = [os === module, Object.getOwnPropertyNames(std.in).length];
std.in.getline();
print(Math.random(), before, [os === module, os.read === module.read, Object.keys(globalThis).includes('os')], std.in.getline());
`)
	c.Stdin = []byte("one\ntwo")
	run := running(t)
	for range 3 {
		if got, want := string(run(t, c).Stdout), "2 false,0 true,true,true two\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
