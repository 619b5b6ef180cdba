package selftest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
)

// attacks are the A cases, which are about HTTP and calls and no skill of their own.
func (r *run) attacks() []step {
	return []step{
		{"A04 compressed bodies", hostile.Responsive, "compressed bodies are refused", r.compressed},
		{"A05 500 slow connections", hostile.Responsive, "bounded connections and times", r.slowConnections},
		{"A06 tenants on one keep-alive connection", hostile.Contained, "requests are copied before a call begins", r.oneConnection},
		{"A07 trace ids with CRLF, ANSI and 10 MB", hostile.Contained, "trace ids of other characters are replaced", r.traceIDs},
		{"A08 2,000 concurrent runs", hostile.Responsive, "a bounded number runs and waits", r.stampede},
	}
}

// talking bounds one conversation.
const talking = 20 * time.Second

// dial opens a connection to the host that ends with the conversation.
func (r *run) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: talking}
	c, err := d.DialContext(ctx, "tcp", r.t.Address())
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(talking))
}

// response is one answer, read to its end.
type response struct {
	status int
	header http.Header
	body   []byte
}

// ask sends the bytes of a request and reads one answer.
func (r *run) ask(ctx context.Context, request string) (*response, error) {
	c, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	go func() { _, _ = io.WriteString(c, request) }() // the host may refuse it before it has read all
	return read(bufio.NewReader(c))
}

func read(b *bufio.Reader) (*response, error) {
	res, err := http.ReadResponse(b, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return &response{res.StatusCode, res.Header, body}, err
}

// nobody is a skill that is not there, to see how a request is taken.
const nobody = "/skills/selftest_nobody:invoke"

func (r *run) compressed(ctx context.Context, row *Row) {
	var member bytes.Buffer
	zip := gzip.NewWriter(&member)
	_, err := zip.Write(make([]byte, 8<<20))
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		row.fault("gzip: %v", err)
		return
	}
	body := strings.Repeat(member.String(), 64) // 512 MiB when it is unpacked
	was := r.watch.resetMemory()
	refused := 0
	for _, coding := range []string{"gzip", "deflate", "br", "zstd", "gzip, gzip"} {
		for _, path := range []string{nobody, "/skills"} {
			res, err := r.ask(ctx, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", path, coding, len(body), body))
			switch {
			case err != nil:
				row.fault("%s to %s is not answered: %v", coding, path, err)
			case res.status != http.StatusUnsupportedMediaType && res.status != http.StatusMethodNotAllowed:
				row.fault("%s to %s is answered with %d %.80s", coding, path, res.status, res.body)
			default:
				refused++
			}
		}
	}
	if took := r.watch.peak() - was; took > mayMemory {
		row.fault("refusing took %.0f MiB", mb(took))
	}
	row.Happened = fmt.Sprintf("%d of 10 refused", refused)
}

func (r *run) slowConnections(ctx context.Context, row *Row) {
	begun := []string{
		"", "P", "POST " + nobody + " HTTP/1.1\r\nHost: localhost\r\nX-A: ",
		"POST " + nobody + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{",
	}
	open := 0
	for i := range 500 {
		c, err := r.dial(ctx)
		if err != nil {
			continue // the host may put them out
		}
		defer c.Close()
		_, _ = io.WriteString(c, begun[i%len(begun)])
		open++
	}
	r.pause(ctx, time.Second) // while others are watched
	row.Happened = fmt.Sprintf("%d connections open for a second", open)
	if open < 400 {
		row.fault("only %d connections could be opened", open)
	}
}

func (r *run) oneConnection(ctx context.Context, row *Row) {
	c, err := r.dial(ctx)
	if err != nil {
		row.fault("no connection: %v", err)
		return
	}
	defer c.Close()
	b := bufio.NewReader(c)
	const rounds = 300
	for i := range rounds {
		who := strings.Repeat(string(rune('a'+i%3)), 5+i%40)
		body := `{"input":{"text":"` + who + `"}}`
		_, err := fmt.Fprintf(c, "POST /skills/selftest_%s:invoke HTTP/1.1\r\nHost: localhost\r\nX-Trace-Id: t-%s\r\nContent-Length: %d\r\n\r\n%s", who, who, len(body), body)
		var res *response
		if err == nil {
			res, err = read(b)
		}
		var result skill.Result
		switch {
		case err != nil:
			row.fault("request %d is not answered: %v", i, err)
			return
		case json.Unmarshal(res.body, &result) != nil || string(result.TraceID) != "t-"+who || res.header.Get("X-Trace-Id") != "t-"+who || string(result.SkillID) != "selftest_"+who:
			row.fault("request %d of %s is answered as %.80s", i, who, res.body)
			return
		}
	}
	row.Happened = fmt.Sprintf("%d requests, each answered as itself", rounds)
}

func (r *run) traceIDs(ctx context.Context, row *Row) {
	held := 0
	for name, head := range map[string]string{
		"CRLF":                 "X-Trace-Id: a\r\nX-Injected: yes",
		"bare carriage return": "X-Trace-Id: a\rX-Injected: yes",
		"bare line feed":       "X-Trace-Id: a\nX-Injected: yes",
		"ANSI":                 "X-Trace-Id: \x1b[31mred",
		"NUL":                  "X-Trace-Id: a\x00b",
		"folded":               "X-Trace-Id: a\r\n X-Injected: yes",
		"not ASCII":            "X-Trace-Id: \u202egnp",
		"10 MB":                "X-Trace-Id: " + strings.Repeat("x", 10<<20),
	} {
		res, err := r.ask(ctx, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"+head+"\r\n\r\n")
		switch {
		case err != nil:
			row.fault("%s is not answered: %v", name, err)
		case res.header.Get("X-Injected") != "":
			row.fault("%s: the answer has a header that the client chose", name)
		case !skill.ValidTraceID(res.header.Get("X-Trace-Id")):
			row.fault("%s: the answer's trace id is %.80q", name, res.header.Get("X-Trace-Id"))
		default:
			held++
		}
	}
	row.Happened = fmt.Sprintf("%d of 8 answered with a trace id of the host's own or a valid one", held)
}

// stampede has one tenant make many calls at once: most are refused, none waits for
// long, and the canary is served.
func (r *run) stampede(ctx context.Context, row *Row) {
	const tenant, many, runs = hostileTenant, 2000, 32 // of those as many as hosts run by default
	id, err := r.t.Add(ctx, tenant, hostile.Harmful("stampede", 300*time.Millisecond))
	if err != nil {
		row.fault("the skill is not admitted: %v", err)
		return
	}
	defer r.t.Remove(ctx, tenant, id)
	r.added, r.atOnce = r.added+1, runs
	r.t.Invoke(ctx, tenant, id, hostile.HarmOf(hostile.Harmless)) // so that it is compiled
	began := r.o.Now()
	var mu sync.Mutex
	codes := map[skill.Code]int{}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			harm := hostile.Sleeps
			if i%10 == 0 {
				harm = hostile.Harmless
			}
			res := r.t.Invoke(ctx, tenant, id, hostile.HarmOf(harm))
			r.lock(func() { r.said(row, res.Error) })
			mu.Lock()
			defer mu.Unlock()
			if res.Error == nil {
				codes[""]++
			} else {
				codes[res.Error.Code]++
			}
		})
	}
	all.Wait()
	took := r.o.Now().Sub(began)
	row.Measured.Calls, row.Measured.MS = many, ms(took)
	for _, code := range sortedCodes(codes) {
		row.Happened = happened(row.Happened, fmt.Sprintf("%d times %s", codes[code], named(code)))
		switch code {
		case "", skill.Timeout, skill.RateLimited:
		case skill.WorkerCrashed: // of one that was killed for another call
		case skill.NotFound: // of one that is in quarantine, since few that do well got through
		default:
			row.fault("a call ended with %s", code)
		}
	}
	row.Happened = happened(row.Happened, fmt.Sprintf("%.1f s", took.Seconds()))
	if codes[skill.RateLimited] == 0 {
		row.fault("all of %d calls at once were taken", many)
	}
	if took > r.o.scale(20*time.Second) {
		row.slow("the last call was answered after %v", took)
	}
}
