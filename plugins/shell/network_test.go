package shell

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"openskill/sdk/skill"
)

// network answers each request with what was asked, by its address.
type network struct{}

func (network) For(*skill.Call) skill.Fetch {
	return func(_ context.Context, request []byte) []byte {
		line, body, _ := bytes.Cut(request, []byte("\n"))
		var r struct {
			Method, URL string
			Headers     map[string]string
			TimeoutMS   int `json:"timeout_ms"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Appendf(nil, `{"error": {"code": "INVALID_ARGUMENT", "message": %q}}`+"\n", err.Error())
		}
		head, text := `{"status": 200, "url": `+fmt.Sprintf("%q", r.URL)+`, "headers": {"content-type": ["text/plain"]}, "error": null}`, ""
		switch r.URL {
		case "http://a.test/denied":
			head = `{"status": 0, "url": "", "headers": {}, "error": {"code": "NETWORK_DENIED", "message": "no grant allows http://a.test"}}`
		case "http://a.test/slow":
			head = `{"status": 0, "url": "", "headers": {}, "error": {"code": "TIMEOUT", "message": "no answer in time"}}`
		case "http://a.test/none":
			head, text = `{"status": 404, "url": "http://a.test/none", "headers": {}, "error": null}`, "nothing here\n"
		case "http://a.test/packed":
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write([]byte("unpacked\n"))
			_ = z.Close()
			head, text = `{"status": 200, "url": "", "headers": {"content-encoding": ["gzip"]}, "error": null}`, b.String()
		case "http://a.test/f.txt":
			text = "a file\n"
		default:
			text = fmt.Sprintf("%s %s %s|%s|%s %d\n", r.Method, r.URL, r.Headers["Content-Type"], r.Headers["Authorization"], body, r.TimeoutMS)
		}
		return append([]byte(head+"\n"), text...)
	}
}

func TestRequests(t *testing.T) {
	r := running(t, Options{Outgoing: network{}})
	for _, c := range []struct{ name, text, want string }{
		{"get", "curl -s http://a.test/x", "GET http://a.test/x || 0\n"},
		{"without a scheme", "curl -sS a.test/x", "GET http://a.test/x || 0\n"},
		{"post", "curl -s -d a=1 -d b=2 http://a.test/x", "POST http://a.test/x application/x-www-form-urlencoded||a=1&b=2 0\n"},
		{"post of a file", "printf '{\\n\"k\": 1}' > b; curl -s --data-binary @b -H 'Content-Type: text/x' http://a.test/x", "POST http://a.test/x text/x||{\n\"k\": 1} 0\n"},
		{"post of standard input", "echo hi | curl -s -X PUT -d @- http://a.test/x", "PUT http://a.test/x application/x-www-form-urlencoded||hi 0\n"},
		{"JSON", "curl -s --json '{}' http://a.test/x", "POST http://a.test/x application/json||{} 0\n"},
		{"a query", "curl -s -G --data-urlencode 'q=a b&c' http://a.test/x", "GET http://a.test/x?q=a%20b%26c || 0\n"},
		{"a user", "curl -s -u me:pass http://a.test/x; curl -s http://me:pass@a.test/x", "GET http://a.test/x |Basic bWU6cGFzcw==| 0\nGET http://a.test/x |Basic bWU6cGFzcw==| 0\n"},
		{"a time", "curl -s -m 1.5 http://a.test/x", "GET http://a.test/x || 1500\n"},
		{"a file", "curl -sO http://a.test/f.txt; curl -s -o g http://a.test/f.txt; cat f.txt g", "a file\na file\n"},
		{"a status", "curl -s -o /dev/null -w '%{http_code} %{content_type}\\n' http://a.test/f.txt; curl -s -w '%{http_code}' http://a.test/none", "200 text/plain\nnothing here\n404"},
		{"fails", "curl -fs http://a.test/none; echo $?; curl -fsS http://a.test/none 2>&1; curl -s --fail-with-body http://a.test/none; echo $?", "22\ncurl: (22) The requested URL returned error: 404\nnothing here\n22\n"},
		{"denied", "curl -sS http://a.test/denied 2>&1; echo $?; curl -s http://a.test/denied; echo $?", "curl: (7) no grant allows http://a.test\n7\n7\n"},
		{"too slow", "curl -s http://a.test/slow || echo $?", "28\n"},
		{"packed", "curl -s --compressed http://a.test/packed", "unpacked\n"},
		{"headers", "curl -sI http://a.test/f.txt | tr -d '\\r'; curl -si http://a.test/f.txt | tail -1", "HTTP/1.1 200 \ncontent-type: text/plain\n\na file\n"},
		{"a form", "echo x > f; curl -s -F a=1 -F f=@f http://a.test/x | tr -d '\\r' | grep -c -e form-data -e '^POST.*multipart'", "3\n"},
		{"piped to jq", "curl -s http://a.test/x | jq -R 'split(\" \")[0]'", "\"GET\"\n"},
		{"unknown", "curl --nonsense http://a.test/x 2>&1; echo $?; curl 2>&1; echo $?", "curl: option --nonsense: is unknown\n2\ncurl: (2) no URL specified\n2\n"},
		{"wget", "wget -q http://a.test/f.txt; cat f.txt; wget -qO- http://a.test/f.txt; wget -q -O - --header 'Authorization: Bearer t' --post-data=x=1 http://a.test/x", "a file\na file\nPOST http://a.test/x application/x-www-form-urlencoded|Bearer t|x=1 0\n"},
		{"wget fails", "wget -q http://a.test/none; echo $?; wget -q http://a.test/denied; echo $?; wget -q --spider http://a.test/f.txt && echo there", "8\n4\nthere\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply := do(t, r, script(t, c.text))
			if string(reply.Stdout) != c.want {
				t.Errorf("%q, want %q\n%s %s", reply.Stdout, c.want, reply.Stderr, reply.Message)
			}
		})
	}
}

// A host without a network says who can allow it.
func TestNoNetwork(t *testing.T) {
	reply := do(t, running(t, Options{}), script(t, "curl -sS http://169.254.169.254/latest 2>&1; echo $?"))
	if want := "curl: (7) network access is disabled for skills on this host; the operator can allow requests in OPENSKILL_HTTP_ALLOW, or to scripts by openskill skills allow\n7\n"; string(reply.Stdout) != want {
		t.Errorf("%q", reply.Stdout)
	}
}

// Variables that were granted are exported, and nothing else of the host is seen.
func TestVariables(t *testing.T) {
	c := script(t, "bash -c 'echo $KEY'; env | cut -d= -f1 | sort | xargs; echo $PWD $0")
	c.Grants.Env = []string{"KEY=two words"}
	reply := do(t, running(t, Options{}), c)
	if want := "two words\nHOME KEY PATH PWD TMPDIR USER\n/skills/script /skills/script/main.sh\n"; string(reply.Stdout) != want {
		t.Errorf("%q, want %q", reply.Stdout, want)
	}
}

// Each run draws its own numbers and tells its own time, and a replay the recorded ones.
func TestReplay(t *testing.T) {
	r := running(t, Options{})
	c := script(t, "echo $RANDOM $SRANDOM; date +%N; shuf -n 1 -i 1-1000000; mktemp; echo $SECONDS; sleep 0.02; date +%s%N")
	c.Record = 1 << 20
	then, other := do(t, r, c), do(t, r, c)
	if then.ExitCode != 0 || then.Recording == nil || then.Recording.Draws == nil || string(then.Stdout) == string(other.Stdout) {
		t.Fatalf("%q %q, %s", then.Stdout, other.Stdout, then.Stderr)
	}
	again := *c
	again.Replay = then.Recording.Draws
	now := do(t, r, &again)
	if now.Differs != "" || string(now.Stdout) != string(then.Stdout) || now.Usage.Fuel != then.Usage.Fuel {
		t.Errorf("%q, %d units of %d\n%s\nthen\n%s", now.Differs, now.Usage.Fuel, then.Usage.Fuel, now.Stdout, then.Stdout)
	}
}
