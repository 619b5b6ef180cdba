package python

import (
	"context"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

type network struct{}

func (network) For(*skill.Call) skill.Fetch {
	return func(_ context.Context, request []byte) []byte {
		return append([]byte(`{"status": 200, "error": null}`+"\n"), strings.ToUpper(string(request))...)
	}
}

// A script asks the network through a file, however it is opened, and sees the
// variables that it was granted.
func TestNetwork(t *testing.T) {
	e, state := warm(t)
	r := New(e, &Options{StateDir: state, Outgoing: network{}})
	defer r.Close()
	c := script(t, `
import json, os, sys

def fetch(request):
    with open("/dev/http", "r+b", buffering=0) as f:
        f.write(request)
        head, _, body = f.read().partition(b"\n")
    return json.loads(head), body

early = fetch(b"early")[0]
sys.stdin.read()
print(early["error"]["code"], *fetch(b"late\n" + b"x" * 100_000)[1][:8].split(b"\n"))
with open("/dev/http", "r+b") as f:
    f.write(b"buffered")
    f.flush()
    print(f.readline(), f.read())
fd = os.open("/dev/http", os.O_RDWR)
os.write(fd, b"de")
os.write(fd, b"scriptor")
print(os.read(fd, 1000), os.read(fd, 1000))
with open("/dev/http", "r+b", buffering=0) as f:
    f.write(b"y" * 3_000_000)
    print(len(f.read()))
print(dict(os.environ))
`)
	c.Stdin, c.Grants.Env = []byte("x"), []string{"A=1", "B=two words"}
	reply := musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	head := `{"status": 200, "error": null}\n`
	want := "NETWORK_DENIED b'LATE' b'XXX'\nb'" + head + "' b'BUFFERED'\nb'" + head + "DESCRIPTOR' b''\n3000031\n{'A': '1', 'B': 'two words'}\n"
	if string(reply.Stdout) != want {
		t.Errorf("%s\n%s%s", reply.Stdout, reply.Stderr, want)
	}
}
