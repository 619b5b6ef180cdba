package dispatch

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"openskill/host/manifest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

func of(tenant string) skill.Principal {
	return skill.Principal{ID: "key-" + tenant, Type: skill.Agent, Tenant: tenant, Scopes: []string{skill.ScopeInvoke}}
}

// ownUploads gives every tenant the skills of the house as its own uploads.
type ownUploads struct{ manifest.Shared }

func (u ownUploads) Get(tenant string, id skill.ID, version string) (*manifest.Skill, error) {
	return uploaded{u.Shared, tenant}.Get(tenant, id, version)
}

// One tenant, or two, make as many slow calls as they can. Every call of another tenant
// succeeds, of the same skills and of others, with small inputs and with large ones.
func TestSlowCallsOfSomeTenantsLeaveRoomForOthers(t *testing.T) {
	large := `{"a":"` + strings.Repeat("x", 83<<10) + `"}`
	for name, c := range map[string]struct {
		slow    []string // tenants
		input   string
		uploads bool
	}{
		"the operator's skills": {[]string{"acme"}, "{}", false},
		"large inputs":          {[]string{"acme"}, large, false},
		"uploads of two":        {[]string{"acme", "beta"}, "{}", true},
		"a skill of two":        {[]string{"acme", "beta"}, "{}", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, func(o *Options) {
				if own, ok := o.Skills.(manifest.Shared); ok && c.uploads {
					o.Skills = ownUploads{own}
				}
			})
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				h.wasm.Answer = func(_ context.Context, k *skill.Call) (*skill.Reply, error) {
					if k.Tenant != "gamma" {
						<-release
					}
					return runnertest.Prints("{}"), nil
				}
				var all sync.WaitGroup
				for _, tenant := range c.slow {
					for _, id := range []skill.ID{"stats", "plain"} {
						for range 20 {
							all.Go(func() { h.Invoke(context.Background(), of(tenant), ask(id, c.input)) })
						}
					}
				}
				synctest.Wait()
				for i := range 11 {
					for _, id := range []skill.ID{"stats", "plain"} {
						if r := h.Invoke(context.Background(), of("gamma"), ask(id, c.input)); !r.Success {
							t.Errorf("call %d of %s by another tenant: %v", i, id, r.Error)
						}
					}
				}
				close(release)
				all.Wait()
			})
		})
	}
}
