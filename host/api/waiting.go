package api

import (
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// A request with Prefer: wait=60 may wait for an approval so long, and so many may at once:
// each has a connection and its body, and tenants share the places.
const (
	maxWait      = time.Minute
	maxUndecided = 64
)

// whenApproved runs a script, and where it needs an approval, once more when that was
// decided while its client prefers to wait. The run that was refused holds no place of
// calls meanwhile. The wait ends with run, which is the client's, and when the host stops.
func (s *Server) whenApproved(ctx *fasthttp.RequestCtx, run context.Context, call func() *skill.Result) *skill.Result { //nolint:revive // run comes of ctx
	r := call()
	id, wait := approval.PendingID(r), prefersWait(ctx)
	if id == "" || wait == 0 || s.opt.Approvals == nil {
		return r
	}
	leave, err := s.undecided.Enter(run, principalOf(ctx).Tenant)
	if err != nil {
		return r // a preference is no order
	}
	defer leave()
	patient, stop := context.WithTimeout(run, wait)
	defer stop()
	defer context.AfterFunc(s.listening, stop)() // that of the server
	if s.opt.Approvals.Wait(patient, id) != nil {
		return r // which says what to do
	}
	ctx.Response.Header.Set("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
	return call()
}

// prefersWait is how long the client of a request prefers to wait, at most maxWait.
func prefersWait(ctx *fasthttp.RequestCtx) time.Duration {
	value, _ := preference(ctx, "wait")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxWait)
}
