package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// document is openapi.json as far as tests read it. That the whole is an OpenAPI document is a
// test of lab.
type document struct {
	whole   map[string]any
	schemas *jsonschema.Compiler
}

var contract = sync.OnceValues(func() (*document, error) {
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	d := &document{whole: whole.(map[string]any), schemas: jsonschema.NewCompiler()}
	d.schemas.AssertFormat()
	return d, d.schemas.AddResource("openapi.json", whole)
})

// at gives what the document has at a pointer, behind a reference; nil: nothing.
func (d *document) at(place string) (string, map[string]any) {
	node := d.whole
	for step := range strings.SplitSeq(strings.TrimPrefix(place, "/"), "/") {
		node, _ = node[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)].(map[string]any)
	}
	if ref, ok := node["$ref"].(string); ok {
		return d.at(strings.TrimPrefix(ref, "#"))
	}
	return place, node
}

// operations gives those of the document by method and path.
func (d *document) operations() map[string]map[string]any {
	out := map[string]map[string]any{}
	for path, item := range d.whole["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if method != "parameters" {
				out[strings.ToUpper(method)+" "+path] = op.(map[string]any)
			}
		}
	}
	return out
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// check holds a response against what the document has at a place.
func (d *document) check(place string, resp *http.Response, body []byte) error {
	place, said := d.at(place)
	if said == nil {
		return errors.New("the document has no such response")
	}
	headers, _ := said["headers"].(map[string]any)
	for name := range headers {
		_, h := d.at(place + "/headers/" + name)
		if h["required"] == true && resp.Header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	content, _ := said["content"].(map[string]any)
	if content == nil {
		return nil
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // without one: any, if that is in the document
	said, _ = content[mediaType].(map[string]any)
	switch {
	case said == nil && content["*/*"] == nil:
		return fmt.Errorf("the document has no content of type %q", mediaType)
	case said["schema"] == nil || mediaType != "application/json":
		return nil
	}
	return d.validate(place+"/content/"+pointer.Replace(mediaType)+"/schema", body)
}

// validate holds JSON against the schema at a place.
func (d *document) validate(place string, body []byte) error {
	schema, err := d.schemas.Compile("openapi.json#" + place)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// checkResponse holds a response against openapi.yaml and against what every
// response promises. It reads the body, puts it back and returns it.
func checkResponse(t testing.TB, method, path string, resp *http.Response) []byte {
	t.Helper()
	doc := musttest.Get(contract())(t)
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))

	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Server": "",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s %s: header %s = %q, want %q", method, path, name, got, want)
		}
	}
	trace := resp.Header.Get("X-Trace-Id")
	if !skill.ValidTraceID(trace) {
		t.Errorf("%s %s: trace id %q", method, path, trace)
	}
	path, _, _ = strings.Cut(path, "?")
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	if strings.HasPrefix(path, "/docs/") && resp.StatusCode == 200 {
		return body // files of a page; not part of the contract
	}
	if method == "OPTIONS" && resp.StatusCode == 204 {
		if resp.Header.Get("Allow") == "" || len(body) > 0 {
			t.Errorf("OPTIONS %s: Allow %q, body %q", path, resp.Header.Get("Allow"), body)
		}
		return body
	}
	if resp.StatusCode == 405 && resp.Header.Get("Allow") == "" {
		t.Errorf("%s %s: 405 without Allow", method, path)
	}
	if method == "HEAD" {
		if len(body) > 0 {
			t.Errorf("HEAD %s: a body of %d bytes", path, len(body))
		}
		return body
	}
	if got := resp.Header.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") {
		t.Errorf("%s %s: policy %q", method, path, got)
	}
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("%s %s: Cache-Control %q", method, path, got)
	}

	if err := doc.check(doc.response(method, path, resp.StatusCode), resp, body); err != nil {
		t.Errorf("%s %s answered %d against the contract: %v\nbody %.600s", method, path, resp.StatusCode, err, body)
	}
	checkError(t, resp.StatusCode, trace, body)
	return body
}

// checkError looks at what a schema cannot say.
func checkError(t testing.TB, status int, trace string, body []byte) {
	t.Helper()
	var b struct {
		TraceID *string            `json:"trace_id"`
		Success *bool              `json:"success"`
		Session *string            `json:"session"`
		Error   *skill.ResultError `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil {
		return // the page of /docs
	}
	if b.Session != nil && status < 400 {
		return // a record, whose trace and error are those of another request
	}
	if b.TraceID != nil && *b.TraceID != trace {
		t.Errorf("trace_id %q in the body, %q in the header", *b.TraceID, trace)
	}
	if b.Success != nil && *b.Success != (status == 200) {
		t.Errorf("success %v with status %d", *b.Success, status)
	}
	if (b.Error != nil) != (status >= 400) {
		t.Fatalf("status %d with error %v", status, b.Error)
	}
	if b.Error == nil {
		return
	}
	if b.Error.Status != status {
		t.Errorf("error.status %d, HTTP status %d", b.Error.Status, status)
	}
	if !b.Error.Code.Known() {
		t.Errorf("code %q is not published", b.Error.Code)
	}
	if usual := b.Error.Code.Status(); usual != status && status != 405 && status != 431 && status != 503 {
		t.Errorf("code %s with status %d, usually %d", b.Error.Code, status, usual)
	}
	if len(b.Error.Message) > 512 || strings.ContainsFunc(b.Error.Message, unicode.IsControl) {
		t.Errorf("message %q", b.Error.Message)
	}
}

// runs matches what is answered with a Normalized Skill Result.
var runs = regexp.MustCompile(`^(/skills/.*:invoke|(?s)/agent-skills/[^/]+/scripts/.+:run)$`)

// response gives the place of what the document says about the answer to a request; for an
// operation that it does not describe, that it fails as all others do.
func (d *document) response(method, path string, status int) string {
	for template := range d.whole["paths"].(map[string]any) {
		pattern := "^" + strings.NewReplacer(`\{id\}/`, `[^/]+/`, `\{name\}/`, `[^/]+/`, `\{id\}`, `[^/:]+`, `\{version\}`, `[^/]+`, `\{name\}`, `[^/:]+`, `\{path\}`, `.+`, `\{script\}`, `.+`, `\{artifact\}`, `.+`, `\{session_id\}`, `[^/]+`).Replace(regexp.QuoteMeta(template)) + "/?$"
		at := "/paths/" + pointer.Replace(template) + "/" + strings.ToLower(method)
		if _, op := d.at(at); op == nil || !regexp.MustCompile(pattern).MatchString(path) {
			continue
		}
		at += "/responses/"
		if _, said := d.at(at + strconv.Itoa(status)); said != nil {
			return at + strconv.Itoa(status)
		}
		return at + strconv.Itoa(status/100) + "XX"
	}
	switch {
	case status < 400:
		return "" // no operation, and no failure
	case strings.HasPrefix(path, "/api/agent/"):
		return "/components/responses/AgentProblem"
	case strings.HasPrefix(path, "/v1/"):
		return "/components/responses/VendorProblem"
	case runs.MatchString(strings.TrimSuffix(path, "/")):
		return "/components/responses/Failed"
	}
	return "/components/responses/Problem"
}

// server is a running edge.
type server struct {
	*api.Server
	Addr   string
	Door   *apitest.Door
	served chan error
}

// start runs an edge until the end of the test.
func start(t testing.TB, change func(*api.Options)) *server {
	t.Helper()
	s := &server{Door: apitest.NewDoor(), served: make(chan error, 1)}
	o := api.Options{
		Door: s.Door, Catalogue: apitest.NewCatalogue(), Authenticate: apitest.As(skill.Local()), Version: "0.1.0",
		AgentSkills: apitest.NewAgentSkills(), Tools: apitest.Tools, Search: apitest.Search,
	}
	if change != nil {
		change(&o)
	}
	var err error
	if s.Server, err = api.New(o); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.Do(t, err)
	s.Addr = ln.Addr().String()
	go func() { s.served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		select {
		case err := <-s.served:
			if err != nil {
				t.Errorf("Serve = %v", err)
			}
		case <-ctx.Done():
			t.Error("Serve did not return")
		}
	})
	return s
}

// do sends one request over a client of its own and checks the answer.
func (s *server) do(t testing.TB, method, path, body string, header ...string) (*http.Response, []byte) {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := musttest.Get(http.NewRequestWithContext(context.Background(), method, "http://"+s.Addr+path, r))(t)
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	tr := &http.Transport{DisableCompression: true}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr, Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}).Do(req)
	musttest.Do(t, err)
	return resp, checkResponse(t, method, path, resp)
}

// raw is a connection on which a test says every byte itself.
type raw struct {
	net.Conn
	br *bufio.Reader
}

func (s *server) dial(t testing.TB) *raw {
	t.Helper()
	c := musttest.Get(net.Dial("tcp", s.Addr))(t)
	t.Cleanup(func() { _ = c.Close() })
	musttest.Do(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return &raw{c, bufio.NewReader(c)}
}

func (c *raw) send(t testing.TB, text string) {
	t.Helper()
	musttest.Get(io.WriteString(c, text))(t)
}

// answer reads one response, checked as the one to method and path.
func (c *raw) answer(t testing.TB, method, path string) (*http.Response, []byte) {
	t.Helper()
	resp, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer to %s %s: %v", method, path, err)
	}
	return resp, checkResponse(t, method, path, resp)
}

// ended fails the test unless the server has closed the connection.
func (c *raw) ended(t testing.TB) {
	t.Helper()
	b, err := c.br.ReadByte()
	var ne net.Error
	if err == nil {
		t.Errorf("the connection goes on with %q", b)
	} else if errors.As(err, &ne) && ne.Timeout() {
		t.Error("the connection stays open")
	}
}

// post is the text of a call.
func post(id, body string) string {
	return "POST /skills/" + id + ":invoke HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
		itoa(len(body)) + "\r\n\r\n" + body
}

// TestTheContractItself checks the document and that its JSON is up to date.
func TestTheContractItself(t *testing.T) {
	doc, err := contract()
	musttest.Do(t, err)
	if doc.whole["openapi"] != "3.1.0" {
		t.Errorf("version %q", doc.whole["openapi"])
	}
	_, limits := doc.at("/components/schemas/RequestLimits/properties")
	fields := new(skill.LimitsJSON).Fields()
	for _, f := range fields {
		if limits[f.Name] == nil {
			t.Errorf("RequestLimits of openapi.yaml lacks %s", f.Name)
		}
	}
	if len(limits) != len(fields) {
		t.Errorf("RequestLimits has %d limits, there are %d", len(limits), len(fields))
	}
	text, err := os.ReadFile("openapi.yaml")
	musttest.Do(t, err)
	var want, got any
	musttest.Do(t, yaml.Unmarshal(text, &want))
	if text, err = json.Marshal(want); err == nil { // as JSON has numbers
		err = json.Unmarshal(text, &want)
	}
	musttest.Do(t, err)
	if text, err = os.ReadFile("openapi.json"); err == nil {
		err = json.Unmarshal(text, &got)
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("openapi.json is stale; run go generate ./host/api\n%v %s", err, diff)
	}
}
