package shell

import (
	"slices"
	"strings"
	"testing"
)

// The lists have what the shell has. Left out are words of its grammar, a command that always
// fails, and one that runs others by its first argument.
func TestCommandsAreThere(t *testing.T) {
	reply := do(t, running(t, Options{}), script(t, "compgen -c"))
	left := strings.Fields("! [[ ]] { } case coproc do done elif else esac fi for function if in select then time until while mkfifo busybox")
	var want []string
	for name := range strings.Lines(string(reply.Stdout)) {
		if name = strings.TrimSpace(name); !slices.Contains(left, name) {
			want = append(want, name)
		}
	}
	if got := strings.Join(Builtins(), " "); got != strings.Join(want, " ") {
		t.Errorf("%s\nwant %s", got, strings.Join(want, " "))
	}
}
