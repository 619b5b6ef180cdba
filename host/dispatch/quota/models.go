package quota

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// The units of what questions to models may come to on a day, as details.unit names them.
const (
	modelRequestsUnit = "model_requests_per_day"
	modelTokensUnit   = "model_tokens_per_day" //nolint:gosec // no credential
	modelCostUnit     = "model_cost_per_day"
)

// Spent is what a tenant's questions to models came to on a day.
type Spent struct {
	Requests int64
	Tokens   int64
	Cost     int64 // in billionths of a US dollar
}

// Reserve counts a question of a tenant to a model, and the tokens and the money that it
// may take at most, before it is put. The question's asker calls settle once with what it
// took; without that the reservation counts until the day is over. The error is a
// *skill.Error: RATE_LIMITED until the next day (UTC) where the question has no room in
// what is left, AUDIT_UNAVAILABLE where the database does not answer.
func (q *Quotas) Reserve(ctx context.Context, tenant string, tokens, cost int64) (settle func(tokens, cost int64), err error) {
	now := q.o.Now()
	day := today(now)
	q.mu.Lock()
	most := Spent{int64(q.o.DailyModelRequests), int64(q.o.DailyModelTokens), q.o.DailyModelCost}
	q.mu.Unlock()
	var full error
	err = q.spend(ctx, tenant, day, func(sum *Spent) {
		wait := day.Add(24 * time.Hour).Sub(now)
		refuse := func(unit string, limit int64, format string, args ...any) {
			full = limited(ofTenant, unit, limit, wait, wait, format, args...)
		}
		switch full = nil; {
		case sum.Requests >= most.Requests:
			refuse(modelRequestsUnit, most.Requests, "model quota exceeded: the tenant has %d requests a day (UTC)", most.Requests)
		case sum.Tokens >= most.Tokens || tokens > most.Tokens-sum.Tokens:
			refuse(modelTokensUnit, most.Tokens, "token quota exceeded: the request may need %d tokens; of the tenant's %d today (UTC), %d are left", tokens, most.Tokens, max(most.Tokens-sum.Tokens, 0))
		case sum.Cost >= most.Cost || cost > most.Cost-sum.Cost:
			refuse(modelCostUnit, most.Cost/10_000_000, "cost quota exceeded: the request may cost %.4f USD; of the tenant's %.2f today (UTC), %.4f are left", dollars(cost), dollars(most.Cost), dollars(max(most.Cost-sum.Cost, 0)))
		default:
			sum.Requests, sum.Tokens, sum.Cost = add(sum.Requests, 1), add(sum.Tokens, tokens), add(sum.Cost, cost)
		}
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, left(ctx)
	case err != nil:
		return nil, unavailable(err)
	case full != nil:
		return nil, q.refused(full)
	}
	var once sync.Once
	return func(usedTokens, usedCost int64) {
		once.Do(func() {
			if usedTokens == tokens && usedCost == cost {
				return
			}
			err := q.spend(context.WithoutCancel(ctx), tenant, day, func(sum *Spent) { // its caller may have left
				sum.Tokens, sum.Cost = add(sum.Tokens, usedTokens-tokens), add(sum.Cost, usedCost-cost)
			})
			if err != nil {
				q.o.Log.Warn("a model request is counted with its maximum cost", slog.String("tenant", tenant), slog.String("error", err.Error()))
			}
		})
	}, nil
}

// spend hands the sums of a tenant and a day to do, which may change them. Money is in a
// row of its own, since a row has no room for three numbers.
func (q *Quotas) spend(ctx context.Context, tenant string, day time.Time, do func(sum *Spent)) error {
	ctx, stop := context.WithTimeout(ctx, askWithin)
	defer stop()
	key := modelKey(tenant, day)
	for {
		held := false
		err := q.o.Store.Exchange(ctx, []string{key, key + " cost"}, func(rows []Row) {
			if held = len(rows) < 2; held {
				return
			}
			countModels(rows, day, do)
		})
		if err != nil || !held {
			return err
		}
		select {
		case <-ctx.Done():
			return errHeld
		case <-time.After(heldPause):
		}
	}
}

func countModels(rows []Row, day time.Time, do func(sum *Spent)) {
	sum := Spent{Requests: rows[0].Calls, Tokens: rows[0].Fuel, Cost: rows[1].Fuel}
	do(&sum)
	rows[0].Calls, rows[0].Fuel, rows[1].Fuel = sum.Requests, sum.Tokens, sum.Cost
	for i := range rows {
		rows[i].Ends = day.Add(25 * time.Hour) // a host whose clock is late may still ask
	}
}

func modelKey(tenant string, day time.Time) string {
	return plainKey("model " + day.Format(time.DateOnly) + " " + tenant)
}

func dollars(billionths int64) float64 { return float64(billionths) / 1e9 }

// Request counts a request of p that is no call of a skill, such as a turn of the agent,
// among what the tenant and the principal may make a minute. Its error is as that of Enter.
func (q *Quotas) Request(ctx context.Context, p skill.Principal) error {
	now := q.o.Now()
	c := &caller{done: make(chan struct{})}
	q.mu.Lock()
	err := q.open()
	if err == nil {
		err = q.rates(c, p, now)
	}
	if err == nil {
		err = c.shut(now)
	}
	if err != nil {
		q.mu.Unlock()
		return q.refused(err)
	}
	return q.refused(q.count(ctx, c, now))
}
