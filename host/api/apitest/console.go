package apitest

import (
	"context"
	"net/http"

	"openskill/host/api"
	"openskill/sdk/skill"
)

// Console makes a console that answers by h and has the sessions that callerOf says; nil:
// nobody has one.
func Console(h http.HandlerFunc, callerOf func(host, cookie string) skill.Principal) func(api.Ask) (api.Console, error) {
	return func(api.Ask) (api.Console, error) { return &pages{h, callerOf}, nil }
}

type pages struct {
	http.Handler
	callerOf func(host, cookie string) skill.Principal
}

func (p *pages) CallerOf(_ context.Context, _, host, cookie string) skill.Principal {
	if p.callerOf == nil {
		return skill.Principal{}
	}
	return p.callerOf(host, cookie)
}
