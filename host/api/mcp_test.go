package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/mcp"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// mcpServer starts an edge with the host's own MCP server mounted.
func mcpServer(t *testing.T) *server {
	t.Helper()
	door := apitest.NewDoor()
	m, err := mcp.New(mcp.Options{
		Door: door, Catalogue: apitest.NewCatalogue(), KeepAlive: 20 * time.Millisecond, ProgressEvery: 10 * time.Millisecond,
		Principal: func(r *http.Request) (skill.Principal, error) { return api.PrincipalOf(r.Context()), nil },
	})
	musttest.Do(t, err)
	s := start(t, func(o *api.Options) { o.MCP = m })
	s.Door = door
	t.Cleanup(func() { _ = m.Close() })
	return s
}

// TestMCPMounted: the client of MCP's own SDK over a real connection to this edge.
func TestMCPMounted(t *testing.T) {
	s := mcpServer(t)
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	progress := make(chan struct{}, 1000)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) {
			select {
			case progress <- struct{}{}:
			default:
			}
		},
	})
	session := musttest.Get(client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: "http://" + s.Addr + "/mcp", HTTPClient: &http.Client{Transport: tr}, MaxRetries: -1}, nil))(t)
	t.Cleanup(func() { _ = session.Close() })

	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) < 4 {
		t.Fatalf("tools: %v, %v", list, err)
	}
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}})
	if err != nil || result.IsError {
		t.Fatalf("call: %+v, %v", result, err)
	}
	if b, err := json.Marshal(result.StructuredContent); err != nil || !strings.Contains(string(b), `"echoed":"hello"`) {
		t.Errorf("structured content %s, %v", b, err)
	}

	h := s.addHeld("sleep")
	params := &sdk.CallToolParams{Name: "sleep", Arguments: map[string]any{}}
	params.SetProgressToken("p-1")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, params)
		done <- err
	}()
	wait(t, "the run", h.begun)
	wait(t, "progress while the call runs", progress)
	cancel()
	if err := wait(t, "the run's end", h.ended); err == nil {
		t.Error("the run ended by itself")
	}
	if err := wait(t, "the call's end", done); !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "again"}}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A call over MCP ends when its connection does, as one over the paths of skills.
func TestMCPCallsEndWithTheirConnection(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	s := mcpServer(t)
	h := s.addHeld("sleep")
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	c := s.dial(t)
	c.send(t, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: sleep\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
	wait(t, "the run", h.begun)
	_ = c.Close()
	if err := wait(t, "the run's end", h.ended); err == nil {
		t.Error("the run ended by itself")
	}
}

// A result that MCP has made is in memory once, and counts until its client has read it.
func TestUnreadResultsOfMCPCount(t *testing.T) {
	s := mcpServer(t)
	const size = 20 << 20
	huge := json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`)
	s.Door.Add("huge", func(context.Context, skill.Request) (json.RawMessage, error) { return huge, nil })
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"huge","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	call := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: huge\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	clients := unread{of: s}
	for n := range 5 {
		if status := clients.ask(t, call); status != 200 {
			t.Fatalf("call %d: %d", n, status)
		}
		within(t, "the result being counted", func() bool { return api.Unread(s.Server) > n*size })
	}
	if held := api.Unread(s.Server); held > 6*size {
		t.Errorf("%d bytes are held of five results of %d", held, size)
	}
	clients.leave(t)
}
