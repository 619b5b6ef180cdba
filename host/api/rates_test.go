package api_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/mcp"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// paced starts an edge with a few requests a minute, on a clock that stands still.
func paced(t *testing.T, perMinute int, change ...func(*api.Options)) (*server, *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	rates := api.NewRates(perMinute, func() time.Time { return now })
	keys := apitest.Keys{"a": tenant("acme", skill.Scopes()...), "b": tenant("beta", skill.Scopes()...)}
	other := keys["a"]
	other.ID = "other-caller"
	keys["a2"] = other
	door := apitest.NewDoor()
	m, err := mcp.New(mcp.Options{
		Door: door, Catalogue: apitest.NewCatalogue(), Rate: rates.Request,
		Principal: func(r *http.Request) (skill.Principal, error) { return api.PrincipalOf(r.Context()), nil },
	})
	musttest.Do(t, err)
	t.Cleanup(func() { _ = m.Close() })
	s := start(t, func(o *api.Options) {
		for _, c := range change {
			c(o)
		}
		o.Door, o.MCP, o.Rates, o.Authenticate = door, m, rates, keys.Authenticate
		o.Console = apitest.Console(func(http.ResponseWriter, *http.Request) {}, nil)
	})
	return s, &now
}

// use makes n requests of a caller, which must all be answered.
func (s *server) use(t *testing.T, n int, headers ...string) {
	t.Helper()
	for range n {
		if resp, body := s.do(t, "GET", "/skills", "", headers...); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
}

// Reads, decisions, uploads and open pages had no rate. Now every route has one, but those by
// which a balancer sees that the host is there.
func TestEveryRouteHasARate(t *testing.T) {
	s, _ := paced(t, 3)
	s.use(t, 3, "X-API-Key", "a")
	for range 3 {
		s.do(t, "GET", "/docs", "")
	}
	fill := strings.NewReplacer("{id}", "echo", "{version}", "1.0.0", "{name}", "x", "{path}", "signin", "{script}", "run.py", "{artifact}", "a.txt", "{session_id}", "x")
	for _, r := range api.Routes() {
		resp, body := s.do(t, r.Method, fill.Replace(r.Path), "", "X-API-Key", "a")
		health := r.Path == "/health" || r.Path == "/healthz" || r.Path == "/readyz"
		if !health && (resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "is 3 per minute")) {
			t.Errorf("%s %s: %d, Retry-After %q, %s", r.Method, r.Path, resp.StatusCode, resp.Header.Get("Retry-After"), body)
		}
		if health && resp.StatusCode != 200 {
			t.Errorf("%s: %d", r.Path, resp.StatusCode)
		}
	}
	for _, path := range []string{"/nowhere", "/skills"} { // unknown, and known to nobody
		if resp, body := s.do(t, "GET", path, ""); resp.StatusCode != 429 {
			t.Errorf("%s without a caller: %d %s", path, resp.StatusCode, body)
		}
	}
}

// Each principal has its own requests, a tenant twice as many, and no tenant uses up another's.
func TestRatesAreOfTheirCallers(t *testing.T) {
	s, now := paced(t, 6)
	refused := func(what string, headers ...string) {
		t.Helper()
		resp, body := s.do(t, "GET", "/skills", "", headers...)
		if resp.StatusCode != 429 || !strings.Contains(string(body), `"what":"`+what+`"`) || resp.Header.Get("RateLimit-Remaining") != "0" {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	s.use(t, 6, "X-API-Key", "a")
	refused("principal", "X-API-Key", "a")
	s.use(t, 6, "X-API-Key", "a2")
	*now = now.Add(10 * time.Second) // one of each principal, two of the tenant
	s.use(t, 1, "X-API-Key", "a")
	s.use(t, 1, "X-API-Key", "a2")
	refused("principal", "X-API-Key", "a")
	s.use(t, 6, "X-API-Key", "b")
}

// Clients that are not known are counted by their own address behind a proxy that is trusted,
// and by nothing that they write themselves.
func TestUnknownClientsAreCountedByAddress(t *testing.T) {
	get := func(s *server, from string) int {
		resp, _ := s.do(t, "GET", "/docs", "", "X-Forwarded-For", from)
		return resp.StatusCode
	}
	s, _ := paced(t, 2, func(o *api.Options) {
		o.TrustedProxies = append(o.TrustedProxies, netip.MustParsePrefix("127.0.0.1/32"))
	})
	if got := []int{get(s, "192.0.2.1"), get(s, "192.0.2.1"), get(s, "192.0.2.1"), get(s, "192.0.2.2"), get(s, "2001:db8::1"), get(s, "2001:db8::2"), get(s, "2001:db8::3")}; fmt.Sprint(got) != "[200 200 429 200 200 200 429]" {
		t.Errorf("behind a proxy: %v", got)
	}
	s, _ = paced(t, 2)
	if got := []int{get(s, "192.0.2.1"), get(s, "192.0.2.2"), get(s, "192.0.2.3")}; fmt.Sprint(got) != "[200 200 429]" {
		t.Errorf("without one: %v", got)
	}
}

// A call that is refused before it runs is counted by no rate of calls, and so by this one.
func TestCallsThatDoNotRunCount(t *testing.T) {
	for name, body := range map[string]string{"skill": `{"input":{}}`, "input": `{`} {
		s, _ := paced(t, 3)
		var got []int
		for range 5 {
			resp, _ := s.do(t, "POST", "/skills/"+map[string]string{"skill": "nosuch", "input": "echo"}[name]+":invoke", body, "X-API-Key", "a")
			got = append(got, resp.StatusCode)
		}
		if got[0] == 429 || got[2] == 429 || got[3] != 429 || got[4] != 429 {
			t.Errorf("%s: %v", name, got)
		}
	}
	s, _ := paced(t, 3)
	var got []int
	for i, tool := range []string{"echo", "nosuch", "No such", "load_skill", "nosuch"} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, i, tool)
		req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr+"/mcp", strings.NewReader(body)))(t)
		for name, v := range map[string]string{"X-API-Key": "a", "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
			req.Header.Set(name, v)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		musttest.Do(t, err)
		_ = resp.Body.Close()
		got = append(got, resp.StatusCode)
	}
	if fmt.Sprint(got) != "[200 400 400 429 429]" {
		t.Errorf("calls of tools over MCP: %v", got)
	}
}

// What is remembered of callers has a bound, and a caller whose requests are used up is not
// forgotten for others.
func TestRatesRememberWhoUsedThemUp(t *testing.T) {
	now := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	rates := api.NewRates(60, func() time.Time { return now })
	from := func(n int) *http.Request {
		return &http.Request{RemoteAddr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), 0).String()}
	}
	used := from(0)
	for range 60 {
		musttest.Do(t, rates.Request(used, 1))
	}
	refused := 0
	for i := range 80_000 {
		if rates.Request(from(1+i), 1) != nil {
			refused++
		}
	}
	if most := 80_000 - 64<<10; refused < most || refused > most+1 {
		t.Errorf("%d new callers are refused at a bound of 65,536", refused)
	}
	if skill.CodeOf(rates.Request(used, 1)) != skill.RateLimited {
		t.Error("who has used up its requests has new ones")
	}
	now = now.Add(2 * time.Second)
	for i := range 1000 {
		musttest.Do(t, rates.Request(from(100_000+i), 1))
	}
	if rates.Request(used, 2) != nil || rates.Request(used, 0) == nil {
		t.Error("after two seconds there are two requests")
	}
	rates.Set(120)
	if rates.Request(from(200_000), 1) != nil {
		t.Error("another rate")
	}
}
