package javascript

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// keeper tells what it sees of every state that a script can change, changes all of
// it, and tells which kinds do look different then.
const keeper = `
const own = { list: [], map: new Map(), weak: new WeakMap(), key: {}, count: 0, set: new Set() };
function* steps() { yield 1; yield 2; yield 3; }
const stepping = steps(); stepping.next();
const pattern = /a/g;
const shared = new Uint8Array(new ArrayBuffer(1 << 16));
class Base { static kept = 'none'; }
const file = std.open('/skill/main.js', 'r');
const stringify = JSON.stringify, out = std.out, evaluate = std.evalScript;
const kinds = {
  global: [() => globalThis.kept, (m) => { globalThis.kept = m; }],
  prototype: [() => ({}).inherited, (m) => { Object.prototype.inherited = m; }],
  arrays: [() => [].kept, (m) => { Array.prototype.kept = m; }],
  method: [() => [1, 2].map((x) => x).length, () => { Array.prototype.map = () => []; }],
  json: [() => JSON.parse('1'), (m) => { JSON.parse = () => m; }],
  chance: [() => Math.abs(-1), (m) => { Math.abs = () => m; }],
  dates: [() => typeof Date.now(), (m) => { Date.now = () => m; }],
  regexp: [() => pattern.lastIndex, () => { pattern.test('a'); }],
  last: [() => RegExp.kept, (m) => { RegExp.kept = m; }],
  list: [() => own.list.length, (m) => { own.list.push(m); }],
  map: [() => [...own.map.keys()].join(), (m) => { own.map.set(m, m); }],
  set: [() => own.set.size, (m) => { own.set.add(m); }],
  weak: [() => own.weak.has(own.key), (m) => { own.weak.set(own.key, m); }],
  counter: [() => own.count, () => { own.count += 1; }],
  generator: [() => stepping.kept, (m) => { stepping.kept = m; stepping.next(); }],
  buffer: [() => shared.reduce((a, b) => a + b, 0), (m) => { shared.fill(m.length); }],
  static: [() => Base.kept, (m) => { Base.kept = m; }],
  symbol: [() => Object.getOwnPropertySymbols(own).length, (m) => { own[Symbol.for(m)] = m; }],
  sealed: [() => Object.isFrozen(own.key), () => { Object.freeze(own.key); }],
  environment: [() => std.getenv('KEPT'), (m) => { std.setenv('KEPT', m); }],
  offset: [() => file.tell(), () => { file.seek(7, std.SEEK_SET); }],
  descriptor: [() => { const fd = os.open('/skill/main.js', os.O_RDONLY); os.close(fd); return fd; },
    () => { os.open('/skill/main.js', os.O_RDONLY); }],
  scratch: [() => os.readdir('/work')[0].join(), (m) => { const f = std.open('/work/' + m, 'w'); f.puts(m); f.close(); }],
  console: [() => typeof console.kept, (m) => { console.kept = m; }],
  error: [() => Error.stackTraceLimit, () => { Error.stackTraceLimit = 77; }],
  functions: [() => (function () {}).kept, (m) => { Function.prototype.kept = m; }],
  promises: [() => Promise.pledged, (m) => { Promise.pledged = m; }],
  iterators: [() => [].values().kept, (m) => { Object.getPrototypeOf([].values()).kept = m; }],
};
const mark = std.in.getline();
const look = (k) => { try { return String(kinds[k][0]()); } catch (e) { return 'error ' + e; } };
const names = Object.keys(kinds);
const seen = [], same = [];
for (let i = 0; i < names.length; i++) seen[i] = names[i] + '=' + look(names[i]);
for (let i = 0; i < names.length; i++) {
  const before = look(names[i]);
  kinds[names[i]][1](mark);
  if (look(names[i]) === before) same[same.length] = names[i];
}
out.puts(seen + '\n' + same + '\n');
out.flush();
out.puts('unflushed ' + mark);
setTimeout(() => out.puts('TIMER ' + mark), mark.endsWith('5') ? 1 : 0);
Promise.resolve().then(() => out.puts('LATER ' + mark));
if (mark.endsWith('7')) throw new Error(mark);
if (mark.endsWith('9')) std.exit(3);
if (mark.endsWith('01')) new Uint8Array(1 << 30);
`

// TestTenantsOfJavaScript has four callers of two skills interleave, and holds that
// each call sees what the first one saw, and no mark but its own.
func TestTenantsOfJavaScript(t *testing.T) {
	calls := 100 // of each
	if testing.Short() {
		calls = 50
	}
	r := New(warm(t), nil)
	defer r.Close()
	skills := []*skill.Call{script(t, keeper), script(t, keeper)}
	var mu sync.Mutex
	first := ""
	var wg sync.WaitGroup
	for tenant := range 4 {
		wg.Go(func() {
			c := *skills[tenant%2]
			c.Grants.Scratch = true
			for i := range calls {
				mark := fmt.Sprintf("MARK%d-%04d", tenant, i)
				c.Stdin = []byte(mark + "\n" + strings.Repeat("unread "+mark, 500))
				reply, err := runnertest.Do(t.Context(), r, &c)
				if err != nil {
					t.Error(err)
					return
				}
				lines := strings.SplitN(string(reply.Stdout), "\n", 3)
				if len(lines) != 3 || lines[1] != "" {
					t.Errorf("call %d: kinds of state that were not changed, or no answer: %.2000q\n%s %.1000s", i, lines, reply.Code, reply.Stderr)
					return
				}
				all := string(reply.Stdout) + string(reply.Stderr)
				if strings.Count(all, "MARK") != strings.Count(all, mark) {
					t.Errorf("a call with %s saw another's: %q", mark, all)
				}
				mu.Lock()
				if first == "" {
					first = lines[0]
				}
				if lines[0] != first {
					t.Errorf("call %d sees %s\nand the first saw %s", i, lines[0], first)
				}
				mu.Unlock()
				if t.Failed() {
					return
				}
			}
		})
	}
	wg.Wait()
	t.Log(first)
}

// TestSameFuelOfJavaScript holds that a call's price tells nothing of other calls.
func TestSameFuelOfJavaScript(t *testing.T) {
	run := running(t)
	c := script(t, "const x = JSON.parse(std.in.readAsString()); print(JSON.stringify(x).length); if (x.grow) globalThis.kept = Array(x.grow).fill('y').join('');")
	inputs := []string{`{"a": 1}`, `{"grow": 100000}`, `{"b": [1, 2, 3]}`}
	want := map[string]skill.Usage{}
	for i := range 50 {
		c.Stdin = []byte(inputs[i*7%5%3])
		reply := run(t, c)
		if reply.Code != "" || reply.ExitCode != 0 {
			t.Fatalf("%+v", reply)
		}
		reply.Usage.StartFuel = 0 // callers are not told of it
		if was, seen := want[string(c.Stdin)]; seen && was != reply.Usage {
			t.Errorf("call %d: %+v, and %+v before", i, reply.Usage, was)
		}
		want[string(c.Stdin)] = reply.Usage
	}
}
