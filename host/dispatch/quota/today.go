package quota

import (
	"context"
	"time"
)

// Today is what a tenant has used of the limits of a day, and these.
type Today struct {
	Calls, Fuel          int64
	CallLimit, FuelLimit int64
	Models, ModelLimits  Spent
	Ends                 time.Time
}

// Today reads what a tenant has used. Calls of the last moment may be missing.
func (q *Quotas) Today(ctx context.Context, tenant string) (t Today, err error) {
	day := today(q.o.Now())
	q.mu.Lock()
	t.CallLimit, t.FuelLimit = int64(q.o.DailyExecutions), int64(q.o.DailyFuel)
	t.ModelLimits = Spent{int64(q.o.DailyModelRequests), int64(q.o.DailyModelTokens), q.o.DailyModelCost}
	q.mu.Unlock()
	t.Ends = day.Add(24 * time.Hour)
	ctx, stop := context.WithTimeout(ctx, askWithin)
	defer stop()
	key := modelKey(tenant, day)
	rows, err := q.o.Store.Read(ctx, []string{dayKey(tenant, day), key, key + " cost"})
	if err != nil {
		if ctx.Err() != nil {
			return t, left(ctx)
		}
		return t, unavailable(err)
	}
	t.Calls, t.Fuel = rows[0].Calls, rows[0].Fuel
	t.Models = Spent{Requests: rows[1].Calls, Tokens: rows[1].Fuel, Cost: rows[2].Fuel}
	return t, nil
}
