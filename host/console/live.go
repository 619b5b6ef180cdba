package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// beatEvery is how often a stream says that it is alive.
const beatEvery = 15 * time.Second

// sight says which calls a principal sees: its own, those of its tenant, or all, as the
// records of the API do. nil: none.
func sight(p skill.Principal) func(*records.EndedCall) bool {
	switch {
	case p.May(skill.ScopeHost):
		return func(*records.EndedCall) bool { return true }
	case p.ID == "" || p.Tenant == "":
		return nil
	case p.May(skill.ScopeAllExecutions):
		return func(c *records.EndedCall) bool { return c.Tenant == p.Tenant }
	case p.May(skill.ScopeExecutions):
		return func(c *records.EndedCall) bool {
			return c.Tenant == p.Tenant && c.Principal == p.ID && c.Kind == string(p.Type)
		}
	}
	return nil
}

// live streams the calls that end now, as rows of the table. It ends with the session, and
// when what the caller may see has changed.
func (v *view) live() error {
	sees := sight(v.p)
	if sees == nil {
		return v.allowed("executions")
	}
	if v.o.Tail == nil {
		return v.fail(http.StatusNotFound, "Live view is not available on this server.")
	}
	only := v.r.URL.Query().Get("skill")
	watcher, err := v.o.Tail.Watch(v.p, func(c *records.EndedCall) bool {
		return c.ID != "" && (only == "" || c.Skill == only) && sees(c)
	})
	if err != nil {
		return err
	}
	defer watcher.Close()

	ctx := v.r.Context()
	out := &stream{w: v.w}
	out.begin()
	for {
		wait, stop := context.WithTimeout(ctx, beatEvery)
		calls, lost, err := watcher.Next(wait)
		stop()
		switch {
		case ctx.Err() != nil:
			out.send("over", "The live view ended. Reload the page to continue.")
			return nil
		case err != nil:
			if out.beat() != nil {
				return nil
			}
			continue
		}
		if lost > 0 {
			out.part(ctx, "lost", lostRow(lost))
		}
		for i := range calls {
			out.part(ctx, "call", liveRow(&calls[i]))
		}
		if out.err != nil {
			return nil
		}
	}
}

// stream writes server-sent events.
type stream struct {
	w   http.ResponseWriter
	err error
}

func (s *stream) begin() {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.Header().Set("X-Accel-Buffering", "no") // a proxy would wait for more
	_ = s.beat()                                // is kept
}

// send writes an event. Each line of its data is a line of the event, so that no data can
// end one and begin another.
func (s *stream) send(kind, data string) {
	var b bytes.Buffer
	b.WriteString("event: " + kind + "\n")
	for line := range strings.SplitSeq(strings.ReplaceAll(data, "\r", ""), "\n") {
		b.WriteString("data: " + line + "\n")
	}
	b.WriteByte('\n')
	s.write(b.Bytes())
}

func (s *stream) part(ctx context.Context, kind string, c templ.Component) {
	var b bytes.Buffer
	if err := c.Render(ctx, &b); err != nil {
		s.err = err
		return
	}
	s.send(kind, b.String())
}

// beat says that the stream is alive.
func (s *stream) beat() error {
	s.write([]byte(": alive\n\n"))
	return s.err
}

func (s *stream) write(b []byte) {
	if s.err != nil {
		return
	}
	if _, s.err = s.w.Write(b); s.err == nil {
		if f, ok := s.w.(http.Flusher); ok {
			f.Flush()
		}
	}
}

func lostText(n uint64) string {
	return fmt.Sprintf("%d calls were skipped because this view was too slow; reload the page to see them.", n)
}
