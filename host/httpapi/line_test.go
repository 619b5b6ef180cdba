package httpapi

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/sdk/skill"
)

// A tenant with many uploads does not keep another one waiting behind all of them.
func TestLineIsFairToTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(2, 2)
		var mu sync.Mutex
		var order []string
		done := make(chan struct{})
		for _, tenant := range []string{"many", "many", "many", "many", "many", "one"} {
			go func() {
				leave, err := l.enter(t.Context(), tenant, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, tenant)
				one := time.Duration(len(order)) * time.Millisecond // after the other
				mu.Unlock()
				time.Sleep(time.Second + one)
				leave()
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		for range 6 {
			<-done
		}
		if diff := cmp.Diff([]string{"many", "many", "one", "many", "many", "many"}, order); diff != "" {
			t.Error(diff)
		}
		if l.total != 0 || len(l.running) != 0 || len(l.waiting) != 0 {
			t.Errorf("left: %d, %v, %d", l.total, l.running, len(l.waiting))
		}
	})
}

// Of a tenant so many wait and no more, and so it is of all together. Who comes from another
// tenant waits all the same, and is next.
func TestLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(2, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var mu sync.Mutex
		codes := map[skill.Code]int{}
		enter := func(tenant string) {
			all.Go(func() {
				leave, err := l.enter(ctx, tenant, time.Minute)
				if err == nil {
					<-ctx.Done()
					leave()
					return
				}
				out := skill.Failure("", "", skill.Meta{}, err).Error
				if ms, ok := number(out.Details["retry_after_ms"]); out.Code == skill.RateLimited && (!ok || ms < 1000) {
					t.Errorf("it is not said when to come again: %v", out.Details)
				}
				mu.Lock()
				defer mu.Unlock()
				codes[out.Code]++
			})
			synctest.Wait()
		}
		expect := func(waiting, turnedAway int) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if len(l.waiting) != waiting || codes[skill.RateLimited] != turnedAway || len(codes) > 1 {
				t.Errorf("%d wait, the others got %v; want %d and %d", len(l.waiting), codes, waiting, turnedAway)
			}
		}

		first, err := l.enter(ctx, "many", 0)
		if err != nil {
			t.Fatal(err)
		}
		second, err := l.enter(ctx, "many", 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			enter("many")
		}
		expect(64, 36)
		enter("one")
		expect(65, 36)
		first()
		expect(64, 36)
		if diff := cmp.Diff(map[string]int{"many": 1, "one": 1}, l.running); diff != "" {
			t.Error(diff)
		}
		for i := range 1000 {
			enter(strconv.Itoa(i % 100))
		}
		expect(512, 36+1000-(512-64))
		enter("another")
		expect(512, 36+1000-(512-64)+1)

		cancel()
		all.Wait()
		second()
		if l.total != 0 || len(l.running) != 0 || len(l.waiting) != 0 {
			t.Errorf("left: %d, %v, %d", l.total, l.running, len(l.waiting))
		}
	})
}

func TestLineForgetsThoseWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(1, 1)
		leave, err := l.enter(t.Context(), "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.enter(t.Context(), "b", 0); skill.CodeOf(err) != skill.RateLimited {
			t.Errorf("got %v", err)
		}
		if _, err := l.enter(t.Context(), "b", time.Second); skill.CodeOf(err) != skill.RateLimited {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := l.enter(ctx, "b", time.Second); skill.CodeOf(err) != skill.Cancelled {
			t.Errorf("got %v", err)
		}
		if len(l.waiting) != 0 {
			t.Error("they are still in line")
		}
		leave()
		if leave, err = l.enter(t.Context(), "b", 0); err != nil {
			t.Fatal(err)
		}
		leave()
	})
}
