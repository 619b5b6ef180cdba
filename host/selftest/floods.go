package selftest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"openskill/examples/hostile"
)

// floods are the rows of callers that take what HTTP itself gives: lists, sessions, memory,
// connections. Beside each of them the canary of another tenant and /healthz are asked.
func (r *run) floods() []step {
	return []step{
		{"C03 lists on 32 and 300 connections", hostile.Responsive, "lists are kept, and tenants take turns to read", r.listFlood},
		{"C04 1,170 MCP sessions and failed sign-ins", hostile.Responsive, "sessions make room by principal and tenant", r.sessionFlood},
		{"C05 1,000 stalled bodies without a caller", hostile.Responsive, "refused by the head; 4 MiB for all", r.bodyFlood},
		{"C06 4,200 idle connections beside an upload", hostile.Responsive, "connections make room by address; work stays", r.connectionFlood},
	}
}

// floodTenant is the one of callers over HTTP where nobody is asked.
const floodTenant = "local"

// heavy is a skill with a manifest of 29 KB.
func heavy(name string) *hostile.Upload {
	u := hostile.Harmful(name, time.Second)
	var b strings.Builder
	b.WriteString("input_schema:\n  type: object\n  properties:\n")
	for i := range 240 {
		fmt.Fprintf(&b, "    field_%04d: {type: string, description: \"the field of number %04d, with a few more words about it\"}\n", i, i)
	}
	u.Manifest = append(u.Manifest, b.String()...)
	return u
}

// listFlood reads the tools of a tenant with large manifests on many connections.
func (r *run) listFlood(ctx context.Context, row *Row) {
	const skills = 12
	r.atOnce = 32 // connections that are answered at once take threads
	for i := range skills {
		u := heavy(fmt.Sprint("heavy ", i))
		id, err := r.t.Add(ctx, floodTenant, u)
		if err != nil {
			row.fault("a skill with a large manifest is not admitted: %v", err)
			return
		}
		defer r.t.Remove(ctx, floodTenant, id)
		r.added++
	}
	for _, conns := range []int{32, 300} {
		bounded, end := context.WithTimeout(ctx, 2*time.Second)
		var all sync.WaitGroup
		var mu sync.Mutex
		codes := map[int]int{}
		for range conns {
			all.Go(func() {
				for bounded.Err() == nil {
					status := r.readList(bounded)
					mu.Lock()
					codes[status]++
					mu.Unlock()
					r.pause(bounded, 100*time.Millisecond) // clients elsewhere take no processor of the host's
				}
			})
		}
		all.Wait()
		end()
		row.Measured.Calls += codes[http.StatusOK]
		row.Happened = happened(row.Happened, fmt.Sprintf("%d connections: %d lists, %d refused", conns, codes[http.StatusOK], codes[http.StatusTooManyRequests]))
		if codes[http.StatusOK] == 0 {
			row.fault("none of %d connections got a list: nothing was tried", conns)
		}
	}
}

// readList asks for one list and reads all of it; 0: the time was over.
func (r *run) readList(ctx context.Context) (status int) {
	c, err := r.dial(ctx)
	if err != nil {
		return 0
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := io.WriteString(c, "GET /tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		return 0
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0
	}
	return res.StatusCode
}

// sessionFlood begins MCP sessions of one caller, each of which would end the oldest of
// anybody if there were no shares, and fails to sign in to the console.
func (r *run) sessionFlood(ctx context.Context, row *Row) {
	const many = 1170
	r.atOnce = 32 // as above
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"selftest","version":"1"}}}`
	var ids []string
	lives := func(id string) bool {
		res, err := r.post(ctx, "/mcp", "application/json", "Accept: application/json, text/event-stream\r\nMcp-Session-Id: "+id+"\r\n", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		return err == nil && res.status == http.StatusOK
	}
	for range many {
		res, err := r.post(ctx, "/mcp", "application/json", "Accept: application/json, text/event-stream\r\n", hello)
		if err != nil || res.status != http.StatusOK {
			row.fault("a session cannot begin: %v %+v", err, res)
			break
		}
		ids = append(ids, res.header.Get("Mcp-Session-Id"))
	}
	living := 0
	for _, id := range ids {
		if lives(id) {
			living++
		}
	}
	for range 100 {
		if _, err := r.post(ctx, "/console/signin", "application/x-www-form-urlencoded", "", "credential=wrong"); err != nil {
			row.fault("a sign-in is not answered: %v", err)
			break
		}
	}
	for _, id := range ids {
		_, _ = r.ask(ctx, "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nMcp-Session-Id: "+id+"\r\n\r\n") // most are over
	}
	row.Happened = fmt.Sprintf("%d sessions begun, %d of them lived", len(ids), living)
	if living == 0 || living > 1024/8 {
		row.fault("%d sessions of one principal live; it may have 128", living)
	}
}

// post sends one request on a connection of its own.
func (r *run) post(ctx context.Context, path, contentType, header, body string) (*response, error) {
	return r.ask(ctx, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s", path, contentType, header, len(body), body))
}

// bodyFlood sends bodies of 1 MiB but for their last byte to routes that know no caller.
func (r *run) bodyFlood(ctx context.Context, row *Row) {
	const many = 1000
	r.atOnce = 32 // as above
	was := r.watch.resetMemory()
	body := make([]byte, 1<<20-1)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close() // nothing was asked
		}
	}()
	for i := range many {
		c, err := r.dial(ctx)
		if err != nil {
			continue // the host may put them out
		}
		open = append(open, c)
		path := []string{"/nowhere", "/healthz", "/mcp/nowhere"}[i%3]
		_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", path, len(body)+1)
		if err == nil {
			_, _ = c.Write(body) // it may be refused by then
		}
	}
	r.pause(ctx, 200*time.Millisecond)
	took := r.watch.peak() - was
	row.Measured.MemoryMB = mb(took)
	row.Happened = fmt.Sprintf("%d connections, %.0f MiB", len(open), mb(took))
	if len(open) < many/2 {
		row.fault("only %d connections could be opened", len(open))
	}
	if took > mayMemory {
		row.fault("stalled bodies took %.0f MiB", mb(took))
	}
}

// connectionFlood opens more connections than a host has while an upload comes in slowly.
func (r *run) connectionFlood(ctx context.Context, row *Row) {
	const many = 4200
	r.atOnce = 32 // as above
	u := hostile.Harmful("slow upload", time.Second)
	form, contentType, err := Encode(u)
	if err != nil {
		row.fault("the upload cannot be written: %v", err)
		return
	}
	up, err := r.dial(ctx)
	if err != nil {
		row.fault("no connection: %v", err)
		return
	}
	defer up.Close()
	half := len(form) / 2
	_, err = fmt.Fprintf(up, "POST /skills HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", contentType, len(form), form[:half])
	if err != nil {
		row.fault("the upload cannot begin: %v", err)
		return
	}
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close() // nothing was asked
		}
	}()
	for range many {
		if c, err := r.dial(ctx); err == nil {
			open = append(open, c)
		}
	}
	if _, err = up.Write(form[half:]); err != nil {
		row.fault("the upload was cut off: %v", err)
		return
	}
	res, err := read(bufio.NewReader(up))
	switch {
	case err != nil:
		row.fault("the upload was cut off: %v", err)
		return
	case res.status != http.StatusCreated && res.status != http.StatusConflict: // of a first try
		row.fault("the upload is answered with %d %.80s", res.status, res.body)
	}
	r.added++
	r.t.Remove(ctx, floodTenant, u.ID)
	row.Happened = fmt.Sprintf("%d connections, the upload is answered with %d", len(open), res.status)
	if len(open) < many/4 {
		row.fault("only %d connections could be opened: nothing was tried", len(open))
	}
}
