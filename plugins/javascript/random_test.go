package javascript

import "testing"

// A script's start is frozen, and with it the state of Math.random: calls must not
// see the same numbers, whichever way they read their input.
func TestChanceOfImages(t *testing.T) {
	run := running(t)
	for _, read := range []string{"std.in.readAsString()", "std.in.getline()", "std.in.getByte()"} {
		c := script(t, "Math.random(); const a = "+read+"; print(a, Math.random(), 1 - Math.random(), Object.getOwnPropertyNames(std.in).length)")
		seen := map[string]bool{}
		for range 20 {
			c.Stdin = []byte("7")
			got := string(run(t, c).Stdout)
			if seen[got] {
				t.Errorf("%s: %q twice", read, got)
			}
			seen[got] = true
		}
	}
}
