package api

import "github.com/valyala/fasthttp"

// knownAnswers is the memory in bytes that answers have until the kernel has taken them: of
// all callers together, shared by tenant.
const knownAnswers = 512 << 20

// smallAnswer is the longest answer in bytes that is not counted.
const smallAnswer = 64 << 10

// holder is who the memory of a request counts for: its tenant, or the network of a client
// that is not known.
func (s *Server) holder(ctx *fasthttp.RequestCtx) string {
	c := callerOf(ctx)
	if c.holder == "" {
		if c.holder = c.principal.Tenant; c.principal.ID == "" {
			c.holder = network(s.clientAddress(ctx))
		}
	}
	return c.holder
}

// reserve counts size bytes of the answer of a request before they are made, in place of
// what was counted for it before. An error is the answer.
func (s *Server) reserve(ctx *fasthttp.RequestCtx, size int) error {
	c := callerOf(ctx)
	if size <= max(c.answer, smallAnswer) {
		return nil
	}
	if !s.answers.take(s.holder(ctx), size-c.answer) {
		return errUnread()
	}
	c.answer = size
	return nil
}

func errUnread() error {
	return errNoRoom("too many large responses are unread; read them")
}

// mayAnswer reports, as an error, whether a request that does something may begin. What it
// has done it must be able to say, so that there is no room for is counted all the same.
func (s *Server) mayAnswer(ctx *fasthttp.RequestCtx) error {
	if onlyReads(ctx) || callerOf(ctx).principal.ID == "" || s.answers.mayOwe(s.holder(ctx)) {
		return nil
	}
	return errUnread()
}

// onlyReads reports whether a request may be refused after its answer is made: it reads, or
// may be made again with the same end.
func onlyReads(ctx *fasthttp.RequestCtx) bool { return ctx.IsGet() || ctx.IsHead() || ctx.IsDelete() }

// made counts an answer of size bytes that is made, in place of what was reserved for it.
func (s *Server) made(ctx *fasthttp.RequestCtx, size int) error {
	c := callerOf(ctx)
	switch {
	case size <= smallAnswer:
		size = 0
	case size > c.answer && onlyReads(ctx):
		return s.reserve(ctx, size)
	case size > c.answer:
		s.answers.owe(s.holder(ctx), size-c.answer)
	}
	if size < c.answer {
		s.answers.give(s.holder(ctx), c.answer-size)
	}
	c.answer = size
	return nil
}

// readerOf is the tenant that reads an answer: of the caller, or of the session of the console.
// Whoever is not known is shown nothing that is made for it alone.
func (s *Server) readerOf(ctx *fasthttp.RequestCtx) (tenant string, known bool) {
	p := principalOf(ctx)
	if p.ID == "" && s.console != nil {
		p = s.console.CallerOf(s.base, network(s.clientAddress(ctx)), string(ctx.Host()), string(ctx.Request.Header.Peek(fasthttp.HeaderCookie)))
	}
	return p.Tenant, p.ID != ""
}

// setBody answers with b, which nobody changes, as it is.
func (s *Server) setBody(ctx *fasthttp.RequestCtx, b []byte) error {
	if err := s.made(ctx, len(b)); err != nil {
		return err
	}
	ctx.Response.SetBodyRaw(b)
	return nil
}

// keepAnswer has what is counted of an answer given back when its last byte is with the
// kernel, or, of one that is read from within, when it is closed.
func (s *Server) keepAnswer(ctx *fasthttp.RequestCtx) {
	c := callerOf(ctx)
	if c.answer == 0 {
		return
	}
	holder, size := c.holder, c.answer
	c.answer = 0
	sent := func() { s.answers.give(holder, size) }
	if conn := connOf(ctx); conn != nil {
		conn.sent = sent
	} else if in := insideOf(ctx); in != nil {
		in.sent = sent
	} else {
		sent()
	}
}
