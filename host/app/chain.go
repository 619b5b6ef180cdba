package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"openskill/host/console"
	"openskill/host/internal/gate"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// What the console verifies of a chain: its newest records, for so long.
const (
	chainRecords = 100_000
	chainTime    = 30 * time.Second
)

// chainChecks lets one chain at a time be verified in a host, by turns of tenants: it costs as
// much as many calls.
var chainChecks = gate.Options{Places: 1, Queue: 64, Wait: chainTime + 5*time.Second, Retry: time.Second}

// chain verifies the chain of a tenant as openskill audit verify does.
func (h *Host) chain(ctx context.Context, tenant string) (*console.ChainState, error) {
	leave, err := h.check.Enter(ctx, tenant)
	if err != nil {
		return nil, gate.Refusal(err, "host.chain", "a verification is already running")
	}
	defer leave()
	var done, last atomic.Uint64 // how far it is
	ctx, cancel := context.WithTimeout(ctx, chainTime)
	defer cancel()
	unread := func(err error) error {
		return &skill.Error{Op: "host.chain", Code: skill.AuditUnavailable, Message: "records unavailable: the database does not respond; retry", Err: err}
	}
	store := h.kept.log.Store()
	o := records.VerifyOptions{Tenant: tenant, Rows: true, Progress: func(_ string, at, of uint64) {
		done.Store(at)
		last.Store(of)
	}}
	heads, err := store.Shown(ctx, tenant)
	if err != nil {
		return nil, unread(err)
	}
	for _, head := range heads {
		if head.Last > chainRecords {
			o.From = head.Last - chainRecords + 1
		}
	}
	report, err := records.Verify(ctx, store, o)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, &skill.Error{
			Op: "host.chain", Code: skill.Timeout,
			Message: fmt.Sprintf("%d of %d records were read in %s; verify them with openskill audit verify", done.Load(), last.Load(), chainTime),
		}
	}
	if err != nil {
		return nil, unread(err)
	}
	out := &console.ChainState{Tenant: tenant}
	for _, chain := range report.Chains {
		out.From, out.Last, out.Records, out.Found = max(o.From, chain.First), chain.Last, chain.Records, chain.Found
		for i := range chain.Faults {
			out.Faults = append(out.Faults, chain.Faults[i].String())
		}
	}
	if out.Found > 0 {
		h.log.WarnContext(ctx, "a chain of records is broken", slog.String("tenant", skill.CleanText(tenant, 128)),
			slog.Int("faults", out.Found), slog.String("fault", out.Faults[0]))
	}
	return out, nil
}
