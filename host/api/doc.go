// Package api is the HTTP edge: it turns requests into calls of the door
// and results into responses, and decides nothing itself.
//
// Each route is a row of [Server.table], and each request goes through [Server.chain].
// openapi.yaml beside this file is the contract: every response and every event that the tests
// see is checked against it.
//
// What the edge takes care of, because nothing below it can:
//
//   - Who asks is found out, and whether the table lets that one in, before anything of a
//     body is read. Nothing else here looks at scopes.
//   - Requests are copied out of fasthttp's pooled buffers before a call begins.
//   - Bodies are never unpacked; a Content-Encoding is refused.
//   - Reading is bounded in bytes and in time, connections are bounded in number.
//   - A client that leaves ends its run: fasthttp does not notice by itself, so
//     while a call takes longer than [peekEvery] its socket is asked, without
//     reading from it, whether the other side has closed.
//   - What is streamed goes out when it is said, and is not collected for a client
//     that does not read: who says it waits, and for so long and no longer.
//   - Web pages of other origins cannot use the operator's authority.
//   - Panics become INTERNAL, and every answer has the shape that openapi.yaml
//     promises. What is no request of HTTP is answered with a Problem.
package api

//go:generate go -C ../../lab run ./specjson ../host/api/openapi.yaml ../host/api/openapi.json
//go:generate go -C ../../lab run ./opentypes ../host/api/openapi.json ../sdk/typescript/openskill.d.ts
