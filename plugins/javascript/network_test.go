package javascript

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

// A script asks the network through a file, and sees the variables that it was granted.
func TestNetwork(t *testing.T) {
	r := New(warm(t), &Options{Outgoing: network{}})
	defer r.Close()
	c := script(t, `
function fetch(request) {
  const f = std.open('/dev/http', 'r+');
  f.puts(request);
  f.flush();
  const text = f.readAsString();
  f.close();
  const end = text.indexOf('\n');
  return [JSON.parse(text.slice(0, end)), text.slice(end + 1)];
}
const early = fetch('early')[0];
std.in.readAsString();
print(early.error.code, fetch('late')[1], fetch('y'.repeat(100000))[1].length, JSON.stringify(std.getenviron()));
`)
	c.Stdin, c.Grants.Env = []byte("x"), []string{"A=1", "B=two words"}
	reply := musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	if want := `NETWORK_DENIED LATE 100000 {"A":"1","B":"two words"}` + "\n"; string(reply.Stdout) != want {
		t.Errorf("%q %s, want %q", reply.Stdout, reply.Stderr, want)
	}
}
