package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/catalogue"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// startUploads runs an edge that takes uploads.
func startUploads(t testing.TB, change func(*api.Options)) (*server, *apitest.Uploads) {
	t.Helper()
	u := &apitest.Uploads{Dir: t.TempDir()}
	s := start(t, func(o *api.Options) {
		o.Uploads, o.UploadLimit = u, 1<<20
		if change != nil {
			change(o)
		}
	})
	t.Cleanup(func() { // before the server stops
		within(t, "uploads to be closed", func() bool { return u.Open() == 0 })
		if left, err := os.ReadDir(u.Dir); err != nil || len(left) > 0 {
			t.Errorf("files left: %v, %v", left, err)
		}
	})
	return s, u
}

// within waits for what happens in another goroutine.
func within(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Errorf("waited for %s in vain", what)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

type part struct {
	name, content string
	header        string // "Name: value"
}

// form is a multipart body with its content type.
func form(t testing.TB, parts ...part) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename="x"`, p.name)}}
		if k, v, ok := strings.Cut(p.header, ": "); ok {
			h.Set(k, v)
		}
		pw := musttest.Get(w.CreatePart(h))(t)
		musttest.Get(io.WriteString(pw, p.content))(t)
	}
	musttest.Do(t, w.Close())
	return b.String(), w.FormDataContentType()
}

func TestUpload(t *testing.T) {
	s, u := startUploads(t, nil)
	archive := strings.Repeat("PK\x03\x04\x00\xff", 100_000)
	body, ct := form(t, part{name: "archive", content: archive})
	resp, answer := s.do(t, "POST", "/skills", body, "Content-Type", ct)
	var got skill.UploadResult
	if err := json.Unmarshal(answer, &got); err != nil || resp.StatusCode != 201 || got.State != skill.StateDisabled || got.ID != "uploaded" {
		t.Errorf("%d %s, %v", resp.StatusCode, answer, err)
	}
	body, ct = form(t, part{name: "manifest", content: "id: x"}, part{name: "module", content: "\x00asm"})
	resp, answer = s.do(t, "POST", "/skills/?dry_run=true", body, "Content-Type", ct)
	if err := json.Unmarshal(answer, &got); err != nil || resp.StatusCode != 200 || got.State != skill.StateDryRun {
		t.Errorf("%d %s, %v", resp.StatusCode, answer, err)
	}
	want := []apitest.Uploaded{
		{Tenant: "local", Archive: apitest.Sum([]byte(archive))},
		{Tenant: "local", Module: apitest.Sum([]byte("\x00asm")), Manifest: apitest.Sum([]byte("id: x")), DryRun: true},
	}
	if diff := cmp.Diff(want, u.Seen()); diff != "" {
		t.Error(diff)
	}
}

// An upload in chunks, twice over one connection, which goes on to other calls.
func TestUploadsShareAConnection(t *testing.T) {
	s, u := startUploads(t, nil)
	c := s.dial(t)
	body, ct := form(t, part{name: "archive", content: strings.Repeat("x", 50_000)})
	for range 2 {
		var chunks strings.Builder
		for rest := body; rest != ""; {
			n := min(len(rest), 7000)
			fmt.Fprintf(&chunks, "%x\r\n%s\r\n", n, rest[:n])
			rest = rest[n:]
		}
		c.send(t, "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+ct+"\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks.String()+"0\r\n\r\n")
		if resp, answer := c.answer(t, "POST", "/skills"); resp.StatusCode != 201 {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
		c.send(t, post("echo", `{"input":{"text":"after"}}`))
		if resp, answer := c.answer(t, "POST", "/skills/echo:invoke"); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
	}
	if n := len(u.Seen()); n != 2 {
		t.Errorf("%d uploads came in, want 2", n)
	}
}

// The body of an upload never is in memory.
func TestUploadsGoToDisk(t *testing.T) {
	s, _ := startUploads(t, func(o *api.Options) { o.UploadLimit = 64 << 20 })
	r, w := io.Pipe()
	mw := multipart.NewWriter(w)
	go func() {
		pw, err := mw.CreateFormFile("archive", "x")
		if err == nil {
			_, err = io.CopyN(pw, zeros{}, 64<<20)
		}
		_ = w.CloseWithError(errors.Join(err, mw.Close()))
	}()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), "POST", "http://"+s.Addr+"/skills", r))(t)
	req.Header.Set("Content-Type", mw.FormDataContentType())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(req)
	runtime.ReadMemStats(&after)
	musttest.Do(t, err)
	if answer := checkResponse(t, "POST", "/skills", resp); resp.StatusCode != 201 {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 { // by both sides
		t.Errorf("an upload of 64 MiB allocated %d MiB", grown>>20)
	}
}

func TestRefusedUploads(t *testing.T) {
	s, u := startUploads(t, nil)
	archive := part{name: "archive", content: "PK"}
	module, manifest := part{name: "module", content: "\x00asm"}, part{name: "manifest", content: "id: x"}
	for name, c := range map[string]struct {
		parts       []part
		body, ct    string // instead of parts
		query       string
		header      []string
		status      int
		code        skill.Code
		wants       string // in the message
		alsoWithout bool
	}{
		"no parts":              {status: 400, code: skill.InvalidArgument, wants: "archive"},
		"module alone":          {parts: []part{module}, status: 400, code: skill.InvalidArgument, wants: "manifest"},
		"manifest alone":        {parts: []part{manifest}, status: 400, code: skill.InvalidArgument, wants: "module"},
		"all of them":           {parts: []part{archive, module, manifest}, status: 400, code: skill.InvalidArgument, wants: "both"},
		"archive twice":         {parts: []part{archive, archive}, status: 400, code: skill.InvalidArgument, wants: "more than once"},
		"another part":          {parts: []part{archive, {name: "trust", content: "builtin"}}, status: 400, code: skill.InvalidArgument, wants: "not a known part"},
		"a part without name":   {parts: []part{{name: "", content: "x"}}, status: 400, code: skill.InvalidArgument},
		"base64":                {parts: []part{{name: "archive", content: "UEs=", header: "Content-Transfer-Encoding: base64"}}, status: 400, code: skill.InvalidArgument, wants: "must be sent without"},
		"large archive":         {parts: []part{{name: "archive", content: strings.Repeat("x", 1<<20+1)}}, status: 413, code: skill.PayloadTooLarge, wants: "1048576"},
		"large module":          {parts: []part{manifest, {name: "module", content: strings.Repeat("x", 1<<20+1)}}, status: 413, code: skill.PayloadTooLarge, wants: "1048576"},
		"large manifest":        {parts: []part{{name: "manifest", content: strings.Repeat("x", 64<<10+1)}, module}, status: 413, code: skill.PayloadTooLarge, wants: "65536"},
		"large in all":          {parts: []part{archive, {name: "archive", content: strings.Repeat("x", 3<<20)}}, status: 413, code: skill.PayloadTooLarge},
		"JSON":                  {body: `{"archive": ""}`, ct: "application/json", status: 415, code: skill.UnsupportedEncoding, wants: "multipart/form-data"},
		"a zip as it is":        {body: "PK", ct: "application/zip", status: 415, code: skill.UnsupportedEncoding, wants: "multipart/form-data"},
		"no type":               {body: "PK", ct: "", status: 415, code: skill.UnsupportedEncoding},
		"no boundary":           {body: "PK", ct: "multipart/form-data", status: 415, code: skill.UnsupportedEncoding, wants: "boundary"},
		"a huge boundary":       {body: "PK", ct: "multipart/form-data; boundary=" + strings.Repeat("x", 71), status: 415, code: skill.UnsupportedEncoding},
		"another boundary":      {body: "--a\r\n\r\n--a--", ct: "multipart/form-data; boundary=b", status: 400, code: skill.InvalidArgument},
		"not multipart":         {body: "hello", ct: "multipart/form-data; boundary=b", status: 400, code: skill.InvalidArgument},
		"ends within a part":    {body: "--b\r\nContent-Disposition: form-data; name=archive\r\n\r\nPK", ct: "multipart/form-data; boundary=b", status: 400, code: skill.InvalidArgument},
		"ends within a head":    {body: "--b\r\nContent-Disposition: form-data; name=arch", ct: "multipart/form-data; boundary=b", status: 400, code: skill.InvalidArgument},
		"a long head":           {parts: []part{{name: "archive", content: "PK", header: "X-A: " + strings.Repeat("x", 32<<10)}}, status: 400, code: skill.InvalidArgument, wants: "before a part"},
		"a long second head":    {parts: []part{manifest, {name: "module", content: "x", header: "X-A: " + strings.Repeat("x", 32<<10)}}, status: 400, code: skill.InvalidArgument, wants: "before a part"},
		"a long preamble":       {body: strings.Repeat("hello\r\n", 4<<10) + "--b\r\n\r\n--b--", ct: "multipart/form-data; boundary=b", status: 400, code: skill.InvalidArgument, wants: "before a part"},
		"compressed":            {parts: []part{archive}, header: []string{"Content-Encoding", "gzip"}, status: 415, code: skill.UnsupportedEncoding, wants: "Content-Encoding"},
		"identity is one too":   {parts: []part{archive}, header: []string{"Content-Encoding", "identity"}, status: 415, code: skill.UnsupportedEncoding},
		"dry run perhaps":       {parts: []part{archive}, query: "?dry_run=maybe", status: 400, code: skill.InvalidArgument, wants: "dry_run"},
		"dry run twice":         {parts: []part{archive}, query: "?dry_run=true&dry_run=false", status: 400, code: skill.InvalidArgument},
		"of another's web page": {parts: []part{archive}, header: []string{"Origin", "https://evil.example"}, status: 403, code: skill.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			body, ct := c.body, c.ct
			if c.body == "" {
				body, ct = form(t, c.parts...)
			}
			header := append([]string{"Content-Type", ct}, c.header...)
			resp, answer := s.do(t, "POST", "/skills"+c.query, body, header...)
			if resp.StatusCode != c.status || !bytes.Contains(answer, []byte(`"`+c.code+`"`)) || !bytes.Contains(answer, []byte(c.wants)) {
				t.Errorf("%d %s, want %d %s with %q", resp.StatusCode, answer, c.status, c.code, c.wants)
			}
		})
	}
	if n := len(u.Seen()); n > 0 {
		t.Errorf("%d uploads came in", n)
	}
}

// What admission says reaches the caller, with its report.
func TestRefusedByAdmission(t *testing.T) {
	s, u := startUploads(t, nil)
	u.Check = func(context.Context, apitest.Uploaded) error {
		return &skill.Error{Code: skill.ArchiveRejected, Message: "a link", Details: map[string]any{"report": map[string]any{"verdict": "refused"}}}
	}
	body, ct := form(t, part{name: "archive", content: "PK"})
	resp, answer := s.do(t, "POST", "/skills", body, "Content-Type", ct)
	if resp.StatusCode != 422 || !bytes.Contains(answer, []byte(`"report":{"verdict":"refused"}`)) {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
}

func TestWhoMayUpload(t *testing.T) {
	body, ct := form(t, part{name: "archive", content: "PK"})
	for name, c := range map[string]struct {
		principal skill.Principal
		none      bool
		status    int
	}{
		"nobody":     {principal: skill.Principal{Scopes: []string{skill.ScopeUpload}}, status: 401},
		"a caller":   {principal: skill.Principal{ID: "a", Tenant: "t", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke}}, status: 403},
		"an author":  {principal: skill.Principal{ID: "a", Tenant: "t", Scopes: []string{skill.ScopeUpload}}, status: 201},
		"no uploads": {principal: skill.Local(), none: true, status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := startUploads(t, func(o *api.Options) {
				if o.Authenticate = apitest.As(c.principal); c.none {
					o.Uploads = nil
				}
			})
			if resp, answer := s.do(t, "POST", "/skills", body, "Content-Type", ct); resp.StatusCode != c.status {
				t.Errorf("%d %s", resp.StatusCode, answer)
			}
		})
	}
}

// What is left of a refused upload is not taken for a request.
func TestTheRestOfARefusedUpload(t *testing.T) {
	s, _ := startUploads(t, nil)
	smuggled := post("echo", `{"input":{"text":"smuggled"}}`)
	for name, head := range map[string]string{
		"wrong type":  "Content-Type: text/plain\r\n",
		"compressed":  "Content-Encoding: gzip\r\n",
		"two lengths": "Transfer-Encoding: chunked\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.send(t, "POST /skills HTTP/1.1\r\nHost: localhost\r\n"+head+"Content-Length: "+itoa(10_000+len(smuggled))+"\r\n\r\n"+strings.Repeat(" ", 10_000)+smuggled)
			if resp, _ := c.answer(t, "POST", "/skills"); !resp.Close || resp.StatusCode < 400 {
				t.Errorf("%d, close %v", resp.StatusCode, resp.Close)
			}
			c.ended(t)
		})
	}
	if n := len(s.Door.Calls()); n > 0 {
		t.Errorf("%d calls reached the door", n)
	}
}

// Announcing too much is answered at once, before a byte of it is sent.
func TestAnnouncedUploads(t *testing.T) {
	s, _ := startUploads(t, nil)
	for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
		c := s.dial(t)
		c.send(t, "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"+expect+"Content-Length: 99999999\r\n\r\n")
		if resp, answer := c.answer(t, "POST", "/skills"); resp.StatusCode != 413 {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
		c.ended(t)
	}
}

func TestSlowUploadsEnd(t *testing.T) {
	s, _ := startUploads(t, func(o *api.Options) { o.UploadTimeout = 100 * time.Millisecond })
	for name, sent := range map[string]string{
		"nothing":  "",
		"a head":   "--b\r\nContent-Disposition: form-data; name=archive\r\n\r\n",
		"10000 B":  "--b\r\nContent-Disposition: form-data; name=archive\r\n\r\n" + strings.Repeat("x", 10_000),
		"all but…": "--b\r\nContent-Disposition: form-data; name=archive\r\n\r\n" + strings.Repeat("x", 10_000) + "\r\n--b--\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			c.send(t, "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n"+sent)
			if resp, answer := c.answer(t, "POST", "/skills"); resp.StatusCode != 408 {
				t.Errorf("%d %s", resp.StatusCode, answer)
			}
			c.ended(t)
		})
	}
}

// A client that leaves frees everything, while it sends and while it waits.
func TestClientsThatLeaveAnUpload(t *testing.T) {
	s, u := startUploads(t, nil)
	entered, ended := make(chan struct{}), make(chan error, 1)
	u.Check = func(ctx context.Context, _ apitest.Uploaded) error {
		close(entered)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return &skill.Error{Code: skill.Cancelled, Message: "left"}
	}
	c := s.dial(t)
	head := "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
	c.send(t, head+"Content-Length: 100000\r\n\r\n--b\r\nContent-Disposition: form-data; name=archive\r\n\r\n"+strings.Repeat("x", 20_000))
	within(t, "the upload to begin", func() bool { return u.Open() == 1 })
	_ = c.Close()
	within(t, "the upload to end", func() bool { return u.Open() == 0 })

	c = s.dial(t)
	body, ct := form(t, part{name: "archive", content: "PK"})
	c.send(t, "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+ct+"\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
	wait(t, "admission", entered)
	_ = c.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ended without a cause")
		}
	case <-time.After(10 * time.Second):
		t.Error("admission goes on for a client that has left")
	}
}

// What has come in and waits to be checked is on the disk, and counts as what is there.
func TestWaitingUploadsCount(t *testing.T) {
	release := make(chan struct{})
	s, u := startUploads(t, func(o *api.Options) { o.Admitting, o.AdmitWait = 1, time.Minute })
	u.Quota = 50_000
	u.Check = func(context.Context, apitest.Uploaded) error { <-release; return nil }
	body, ct := form(t, part{name: "archive", content: strings.Repeat("x", 20_000)})
	upload := "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + ct + "\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body
	var waiting []*raw
	for range 2 {
		c := s.dial(t)
		c.send(t, upload)
		waiting = append(waiting, c)
	}
	within(t, "two to come in", func() bool { return u.Reserved() == 40_000 })
	third := s.dial(t)
	third.send(t, upload)
	if resp, answer := third.answer(t, "POST", "/skills"); resp.StatusCode != 413 || !bytes.Contains(answer, []byte("quota")) {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	close(release)
	for _, c := range waiting {
		if resp, answer := c.answer(t, "POST", "/skills"); resp.StatusCode != 201 {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
	}
}

// A few uploads are checked at once, and others wait in line or are told when to
// come back.
func TestManyUploads(t *testing.T) {
	release := make(chan struct{})
	s, u := startUploads(t, func(o *api.Options) {
		o.Admitting, o.AdmitWait, o.Receiving = 1, 200*time.Millisecond, 5
	})
	var mu sync.Mutex
	running, most := 0, 0
	u.Check = func(context.Context, apitest.Uploaded) error {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-release
		mu.Lock()
		running--
		mu.Unlock()
		return nil
	}
	body, ct := form(t, part{name: "archive", content: strings.Repeat("x", 20_000)})
	upload := "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + ct + "\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n"
	first := s.dial(t)
	first.send(t, upload+body)
	within(t, "the first to be checked", func() bool { mu.Lock(); defer mu.Unlock(); return running == 1 })
	second := s.dial(t)
	second.send(t, upload+body)
	resp, answer := second.answer(t, "POST", "/skills") // after it has waited
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	// Three of five places to come in are one tenant's share.
	var slow []*raw
	for range 3 {
		c := s.dial(t)
		c.send(t, upload+body[:10_000])
		slow = append(slow, c)
	}
	within(t, "three to come in", func() bool { return u.Open() == 4 })
	fourth := s.dial(t)
	fourth.send(t, upload+body)
	if resp, answer := fourth.answer(t, "POST", "/skills"); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	close(release)
	if resp, answer := first.answer(t, "POST", "/skills"); resp.StatusCode != 201 {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	for _, c := range slow {
		c.send(t, body[10_000:])
		if resp, answer := c.answer(t, "POST", "/skills"); resp.StatusCode != 201 {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
	}
	if most != 1 {
		t.Errorf("%d were checked at once", most)
	}
}

// Who asks for the report of what there is not, does not wait for those who are checked.
func TestReportsOfNothingDoNotWait(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{}, 1)
	s, u := startUploads(t, func(o *api.Options) { o.Admitting, o.AdmitWait = 1, time.Minute })
	u.Check = func(context.Context, apitest.Uploaded) error { entered <- struct{}{}; <-release; return nil }
	body, ct := form(t, part{name: "archive", content: "PK"})
	c := s.dial(t)
	c.send(t, "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+ct+"\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
	wait(t, "admission", entered)
	if resp, answer := s.do(t, "GET", "/skills/nosuch/versions/1.0.0", ""); resp.StatusCode != 404 {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	close(release)
	if resp, answer := c.answer(t, "POST", "/skills"); resp.StatusCode != 201 {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
}

func TestDecisions(t *testing.T) {
	s, u := startUploads(t, nil)
	for _, c := range []struct {
		method, path, body string
		status             int
		wants              string
	}{
		{"POST", "/skills/uploaded:enable", "", 200, `"state":"enabled"`},
		{"POST", "/skills/uploaded:enable", `{"version": "1.2.0", "word": "looked at it", "tenant": "acme"}`, 200, `"version":"1.2.0"`},
		{"POST", "/skills/uploaded:disable", "{}", 200, `"state":"disabled"`},
		{"POST", "/skills/uploaded:approve", `{"version": "1.2.0"}`, 200, `"shared":true`},
		{"POST", "/skills/uploaded%3Arollback", "", 200, `"state":"enabled"`},
		{"DELETE", "/skills/uploaded/versions/1.2.0", "", 200, `"state":"deleted"`},
		{"DELETE", "/skills/uploaded/versions/1.2.0+b.1?tenant=acme", "", 200, `"version":"1.2.0+b.1"`},
		{"DELETE", "/skills/uploaded/versions/1.2.0%2Bb.1", "", 200, `"version":"1.2.0+b.1"`},
		{"POST", "/skills/other:enable", "", 404, "NOT_FOUND"},
		{"POST", "/skills/Uploaded:enable", "", 400, "INVALID_ARGUMENT"},
		{"POST", "/skills/uploaded:enable", "[]", 400, "JSON object"},
		{"POST", "/skills/uploaded:enable", `{"version": 1}`, 400, "must be a string"},
		{"POST", "/skills/uploaded:enable", `{"version": ""}`, 400, "1 to 64"},
		{"POST", "/skills/uploaded:enable", `{"Version": "1.0.0"}`, 400, "not a known key"},
		{"POST", "/skills/uploaded:enable", `{"version": "1.0.0", "version": "2.0.0"}`, 400, "more than once"},
		{"POST", "/skills/uploaded:approve", `{"reason": "` + strings.Repeat("x", 401) + `"}`, 400, "1 to 400"},
		{"GET", "/skills/uploaded:enable", "", 405, "POST"},
		{"POST", "/skills/uploaded/versions/1.0.0", "", 405, "DELETE"},
		{"DELETE", "/skills/uploaded/versions/" + strings.Repeat("1", 65), "", 400, "1 to 64"},
		{"DELETE", "/skills/up:enable/versions/1.0.0", "", 400, "a skill id is"},
		{"POST", "/skills/uploaded:release", "", 404, "not found; see"},
		{"DELETE", "/skills/uploaded", "", 403, "is disabled"},
	} {
		resp, answer := s.do(t, c.method, c.path, c.body)
		if resp.StatusCode != c.status || !bytes.Contains(answer, []byte(c.wants)) {
			t.Errorf("%s %s %s: %d %s, want %d with %q", c.method, c.path, c.body, resp.StatusCode, answer, c.status, c.wants)
		}
	}
	want := []catalogue.Decision{
		{Action: "enable", By: skill.Local(), ID: "uploaded"},
		{Action: "enable", By: skill.Local(), ID: "uploaded", Version: "1.2.0", Tenant: "acme", Reason: "looked at it"},
		{Action: "disable", By: skill.Local(), ID: "uploaded"},
		{Action: "approve", By: skill.Local(), ID: "uploaded", Version: "1.2.0"},
		{Action: "rollback", By: skill.Local(), ID: "uploaded"},
		{Action: "delete", By: skill.Local(), ID: "uploaded", Version: "1.2.0"},
		{Action: "delete", By: skill.Local(), ID: "uploaded", Version: "1.2.0+b.1", Tenant: "acme"},
		{Action: "delete", By: skill.Local(), ID: "uploaded", Version: "1.2.0+b.1"},
	}
	if diff := cmp.Diff(want, u.Decisions()); diff != "" {
		t.Error(diff)
	}
}

// tenants is a catalogue that tells who looked.
type tenants struct{ apitest.Catalogue }

func (tenants) Get(p skill.Principal, id skill.ID, _ string) (skill.Descriptor, error) {
	return skill.Descriptor{ID: id, Description: p.ID + " of " + p.Tenant, InputSchema: json.RawMessage("{}"), OutputSchema: json.RawMessage("{}")}, nil
}

func TestTheOperatorLooksAtATenant(t *testing.T) {
	author := skill.Principal{ID: "ann", Tenant: "a", Scopes: []string{skill.ScopeRead, skill.ScopeUpload}}
	for _, c := range []struct {
		principal skill.Principal
		path      string
		status    int
		wants     string
	}{
		{skill.Local(), "/skills/up?tenant=acme", 200, "local of acme"},
		{skill.Local(), "/skills/up", 200, "local of local"},
		{author, "/skills/up?tenant=a", 200, "ann of a"},
		{author, "/skills/up?tenant=b", 403, "FORBIDDEN"},
		{author, "/skills?tenant=b", 403, "FORBIDDEN"},
		{author, "/skills/up/versions?tenant=b", 403, "FORBIDDEN"},
		{author, "/skills/up?tenant=", 400, "tenant"},
		{author, "/skills/up?tenant=a&tenant=b", 400, "more than once"},
	} {
		s := start(t, func(o *api.Options) {
			o.Authenticate, o.Catalogue = apitest.As(c.principal), tenants{apitest.NewCatalogue()}
		})
		if resp, body := s.do(t, "GET", c.path, ""); resp.StatusCode != c.status || !bytes.Contains(body, []byte(c.wants)) {
			t.Errorf("%s %s: %d %s, want %d with %q", c.principal.ID, c.path, resp.StatusCode, body, c.status, c.wants)
		}
	}
}

// curl asks before it sends a large body.
func TestUploadAfterAQuestion(t *testing.T) {
	s, u := startUploads(t, nil)
	c := s.dial(t)
	body, ct := form(t, part{name: "archive", content: strings.Repeat("x", 500_000)})
	c.send(t, "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+ct+"\r\nExpect: 100-continue\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n")
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	said := make([]byte, len(goOn))
	if _, err := io.ReadFull(c.br, said); err != nil || string(said) != goOn {
		t.Fatalf("%q, %v", said, err)
	}
	c.send(t, body)
	if resp, answer := c.answer(t, "POST", "/skills"); resp.StatusCode != 201 {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	c.send(t, post("echo", `{"input":{"text":"after"}}`))
	if resp, answer := c.answer(t, "POST", "/skills/echo:invoke"); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
	if n := len(u.Seen()); n != 1 {
		t.Errorf("%d uploads came in", n)
	}
}
