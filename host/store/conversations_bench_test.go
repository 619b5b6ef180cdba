package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/records"
	"openskill/host/store"
)

// aRound is what one question to a model and two calls of tools add.
func aRound() []llm.Message {
	return []llm.Message{
		{Role: llm.Assistant, Calls: []llm.Call{
			{ID: "call_1", Name: "file_search", Arguments: `{"query": "revenue", "path": "reports"}`},
			{ID: "call_2", Name: "calculator", Arguments: `{"operation": "stats", "values": [1, 2, 3, 4, 5]}`},
		}},
		{Role: llm.Tool, CallID: "call_1", Text: strings.Repeat("reports/2026/q3.md:17: revenue grew\n", 60)},
		{Role: llm.Tool, CallID: "call_2", Text: `{"mean": 3, "median": 3, "count": 5}`},
	}
}

// someConversations begins n conversations of a hundred owners.
func someConversations(b *testing.B, s conversations.Store, n int) []*conversations.Conversation {
	b.Helper()
	all := make([]*conversations.Conversation, n)
	for i := range all {
		all[i] = &conversations.Conversation{
			ID: uuid.Must(uuid.NewV7()).String(), Owner: conversations.Owner{Tenant: fmt.Sprint("t", i%10), Principal: fmt.Sprint("p", i%100)},
			Title: "how did revenue do?", CreatedAt: when, UpdatedAt: when,
		}
		if err := s.Create(b.Context(), all[i]); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

// report gives the middle and the last percent of some times.
func report(b *testing.B, name string, took []time.Duration) {
	b.Helper()
	if len(took) > 0 {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), name+"-p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), name+"-p99-µs")
	}
}

// BenchmarkConversationRound appends rounds to conversations: one after the other, and as
// a thousand callers do at once.
func BenchmarkConversationRound(b *testing.B) {
	benchEach(b, func(b *testing.B, d *store.DB) {
		b.Helper()
		for _, callers := range []int{1, 1000} {
			b.Run(fmt.Sprint(callers), func(b *testing.B) {
				all := someConversations(b, conversations.NewStore(d), 1000)
				b.ResetTimer()
				appendRounds(b, d, all, callers)
			})
		}
	})
}

// appendRounds appends b.N rounds, each caller to conversations of its own.
func appendRounds(b *testing.B, d *store.DB, all []*conversations.Conversation, callers int) {
	b.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var next atomic.Int64
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			var mine []time.Duration
			for k := i; next.Add(1) <= int64(b.N); k += callers {
				c := all[k%len(all)]
				began := time.Now()
				c.UpdatedAt = began
				if err := conversations.NewStore(d).Append(context.Background(), c, aRound(), 50); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
	report(b, "round", took)
}

// BenchmarkConversationsBesideRecords is how long batches of records take, alone and while
// conversations are appended to.
func BenchmarkConversationsBesideRecords(b *testing.B) {
	benchEach(b, func(b *testing.B, d *store.DB) {
		b.Helper()
		for _, callers := range []int{0, 1, 10, 100, 1000} {
			b.Run(fmt.Sprint(callers), func(b *testing.B) {
				all := someConversations(b, conversations.NewStore(d), max(callers, 1))
				ctx, stop := context.WithCancel(context.Background())
				var rounds atomic.Int64
				var running sync.WaitGroup
				for i := range callers {
					running.Go(func() {
						for c := all[i]; ctx.Err() == nil; rounds.Add(1) {
							if err := conversations.NewStore(d).Append(ctx, c, aRound(), 50); err != nil && ctx.Err() == nil {
								b.Error(err)
								return
							}
						}
					})
				}
				entries := make([]*records.Entry, 0, 20*b.N)
				for i := range 10 * b.N {
					start, end := pair(b, "acme", when.Add(time.Duration(i)*time.Millisecond))
					entries = append(entries, start, end)
				}
				took := make([]time.Duration, 0, b.N)
				rounds.Store(0)
				b.ResetTimer()
				for batch := range slices.Chunk(entries, 20) {
					began := time.Now()
					if err := records.NewStore(d).Append(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(began))
				}
				b.ReportMetric(float64(rounds.Load())/b.Elapsed().Seconds(), "rounds/s")
				stop()
				running.Wait()
				report(b, "batch", took)
			})
		}
	})
}
