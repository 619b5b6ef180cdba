package httpapi

import (
	"context"
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
