package app

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestSessionKilled: the worker of a session is killed, between calls and during one. The session is as it was after the
// last call that was answered.
func TestSessionKilled(t *testing.T) {
	hosttest.NoRace(t)
	h := codeHost(t, map[string]string{})
	p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{"skills:invoke", "skills:invoke:run_code"}}
	_, r := cell(t, h, p, "new", "x = 1", nil)
	id := sessionOf(t, r)
	kill := func() {
		for _, pid := range h.workers.pool.Stats().Pids {
			musttest.Do(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	for i := 2; i < 5; i++ {
		kill()
		for range 3 { // the host may not know yet that its worker is gone
			got, r := cell(t, h, p, id, "x += 1; x", nil)
			if got == "WORKER_CRASHED" {
				continue
			}
			if got != fmt.Sprint(i) {
				t.Errorf("%s; want %d; %+v", got, i, r.Error)
			}
			break
		}
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		if got, r := cell(t, h, p, id, "x = 100; open('f', 'w').write('f')\nwhile True: pass", nil); got == "null" {
			t.Errorf("%s %+v", got, r.Error)
		}
	})
	for h.workers.pool.Stats().Busy == 0 {
		time.Sleep(time.Millisecond)
	}
	kill()
	wait.Wait()
	if got, r := cell(t, h, p, id, "import os; [x, os.path.exists('f')]", nil); got != "[4,false]" {
		t.Errorf("%s %+v", got, r.Error)
	}
}
