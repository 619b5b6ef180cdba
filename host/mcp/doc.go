// Package mcp is the MCP edge: every skill as a tool, every Agent Skill as
// resources, a prompt and an entry of the Skills extension, over standard input and
// output or streamable HTTP.
//
// It decides nothing. What a session sees is what its principal finds in the
// catalogue, and a call goes through the same door as one over HTTP. The transports
// and the messages are those of the official SDK; what is offered is not registered
// with it but looked up at each request, so that no session sees an older catalogue.
//
// The protocol is that of revision 2026-07-28, and those before it with their
// handshake. Its extensions are io.modelcontextprotocol/skills (SEP-2640) and
// io.modelcontextprotocol/tasks (SEP-2663).
package mcp
