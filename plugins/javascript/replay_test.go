package javascript

import "testing"

// TestReplay holds that scripts which look at clocks, chance and timers, before and after
// their first read, do again what they did.
func TestReplay(t *testing.T) {
	run := running(t)
	const looks = `
print(Math.random(), Date.now(), new Date().toISOString(), performance.now());
setTimeout(() => print("later", Math.random(), Date.now()), 20);
`
	for name, text := range map[string]string{
		"after its input": "std.in.readAsString();" + looks,
		"before it too":   "const early = [Math.random(), Date.now()]; print(early, std.in.readAsString());" + looks,
		"without any":     looks,
	} {
		t.Run(name, func(t *testing.T) {
			c := script(t, text)
			c.Stdin = []byte("the input")
			recorded, again := *c, *c
			recorded.Record = 1 << 20
			then, other := run(t, &recorded), run(t, &recorded)
			if then.ExitCode != 0 || then.Recording == nil || then.Recording.Draws == nil || string(then.Stdout) == string(other.Stdout) {
				t.Fatalf("%q, %+v %s", then.Stdout, then.Recording, then.Stderr)
			}
			again.Replay = then.Recording.Draws
			now := run(t, &again)
			if now.Differs != "" || string(now.Stdout) != string(then.Stdout) || now.Usage.Fuel != then.Usage.Fuel {
				t.Errorf("%q, %d units of %d\n%s\nthen\n%s", now.Differs, now.Usage.Fuel, then.Usage.Fuel, now.Stdout, then.Stdout)
			}
		})
	}
}
