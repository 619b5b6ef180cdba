package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"openskill/host/agent"
	"openskill/host/api"
	"openskill/host/identity"
	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

// BenchmarkEdge shows what the edge itself costs: echo through it with a door
// that does nothing, against a bare route of fiber that decodes and encodes the
// same JSON. The two take turns within every iteration, so that both see the
// same machine. It reports the time of each and their ratio; nobody should have
// to pay more than twice the bare route for the whole product.
func BenchmarkEdge(b *testing.B) {
	s := start(b, nil)
	s.Door.Add("echo", func(_ context.Context, r skill.Request) (json.RawMessage, error) { return r.Input, nil })

	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/skills/:id\\:invoke", func(c *fiber.Ctx) error {
		var in struct {
			Input   json.RawMessage  `json:"input"`
			Version string           `json:"version"`
			Limits  skill.LimitsJSON `json:"limits"`
		}
		if err := json.Unmarshal(c.Body(), &in); err != nil {
			return err
		}
		return c.JSON(skill.Result{Success: true, SkillID: skill.ID(c.Params("id")), Data: in.Input})
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = app.Listener(ln) }() // until Shutdown below
	b.Cleanup(func() { _ = app.Shutdown() })

	for _, size := range []int{16, 4 << 10, 256 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			text := []byte(post("echo", `{"input":{"text":"`+strings.Repeat("x", size)+`"}}`))
			edge, bare := dialBench(b, s.Addr), dialBench(b, ln.Addr().String())
			var edgeTime, bareTime time.Duration
			b.ResetTimer()
			for range b.N {
				bareTime += bare.turn(b, text)
				edgeTime += edge.turn(b, text)
			}
			b.ReportMetric(float64(edgeTime.Nanoseconds())/float64(b.N), "edge-ns")
			b.ReportMetric(float64(bareTime.Nanoseconds())/float64(b.N), "bare-ns")
			b.ReportMetric(float64(edgeTime)/float64(bareTime), "edge/bare")
		})
	}
}

// BenchmarkFirstEvent shows what the edge adds to the first word of a model: the time
// from the moment in which the agent tells of it to the one in which the client has it,
// without and with a hundred other streams on which words go by.
func BenchmarkFirstEvent(b *testing.B) {
	for _, others := range []int{0, 100} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			said := make(chan time.Time, 1)
			s, _ := talking(b, func(ctx context.Context, r agent.ChatRequest, hear func(agent.Event), _ *agent.Answer) error {
				if r.Message == "other" {
					tick := time.NewTicker(10 * time.Millisecond)
					defer tick.Stop()
					for ctx.Err() == nil {
						hear(agent.Event{Kind: agent.EventText, Text: "word "})
						<-tick.C
					}
					return context.Cause(ctx)
				}
				said <- time.Now()
				hear(agent.Event{Kind: agent.EventText, Text: "word "})
				return nil
			}, nil)
			for range others {
				c := s.dial(b)
				c.send(b, talk(`{"message":"other","stream":true}`))
				_, events := c.listen(b)
				go func() { _, _ = io.Copy(io.Discard, events.br) }() // until the connection is closed
			}
			c := s.dial(b)
			var took []time.Duration
			b.ResetTimer()
			for range b.N {
				if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
					b.Fatal(err)
				}
				c.send(b, talk(aStream))
				_, events := c.listen(b)
				events.until("text")
				took = append(took, time.Since(<-said))
				events.rest()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

type benchConn struct {
	net.Conn
	br *bufio.Reader
}

func dialBench(b *testing.B, addr string) *benchConn {
	b.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return &benchConn{c, bufio.NewReaderSize(c, 64<<10)}
}

func (c *benchConn) turn(b *testing.B, text []byte) time.Duration {
	b.Helper()
	at := time.Now()
	if _, err := c.Write(text); err != nil {
		b.Fatal(err)
	}
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil || resp.StatusCode != 200 {
		b.Fatalf("%v %v", resp, err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
	return time.Since(at)
}

// BenchmarkCaller shows what it costs to know who calls: echo by a caller who shows a
// key, which the authenticator of the host looks up in its cache, against the same edge
// where everybody is the operator. The two take turns within every iteration.
func BenchmarkCaller(b *testing.B) {
	store := identity.NewKeyStore(storetest.SQLite(b))
	_, key, err := identity.NewKeys(store).Create(b.Context(), identity.NewKey{Name: "bench", Tenant: "acme", Scopes: []string{skill.ScopeInvoke}})
	if err != nil {
		b.Fatal(err)
	}
	callers, err := identity.New(identity.Options{Keys: store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = callers.Close() })
	echo := func(_ context.Context, r skill.Request) (json.RawMessage, error) { return r.Input, nil }
	asked := start(b, func(o *api.Options) {
		o.Authenticate = func(ctx context.Context, c identity.Credentials) (skill.Principal, error) {
			return callers.Authenticate(ctx, c)
		}
	})
	open := start(b, nil)
	asked.Door.Add("echo", echo)
	open.Door.Add("echo", echo)
	text := post("echo", `{"input":{"text":"hello"}}`)
	text = strings.Replace(text, "Host: localhost", "Host: localhost\r\nAuthorization: Bearer "+key, 1)
	known, operator := dialBench(b, asked.Addr), dialBench(b, open.Addr)
	var knownTimes, openTimes []time.Duration
	b.ResetTimer()
	for range b.N {
		openTimes = append(openTimes, operator.turn(b, []byte(text)))
		knownTimes = append(knownTimes, known.turn(b, []byte(text)))
	}
	slices.Sort(openTimes)
	slices.Sort(knownTimes)
	b.ReportMetric(float64(knownTimes[b.N/2]), "known-p50-ns")
	b.ReportMetric(float64(openTimes[b.N/2]), "open-p50-ns")
	b.ReportMetric(float64(knownTimes[b.N/2]-openTimes[b.N/2]), "added-p50-ns")
}
