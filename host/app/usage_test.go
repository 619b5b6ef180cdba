package app

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"openskill/host/agent/llm/llmtest"
	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// What a tenant has stored and used is what GET /usage says, and nobody but the operator
// reads another tenant's.
func TestUsageOfATenant(t *testing.T) {
	t.Parallel()
	h := openHost(t, settings(t, map[string]string{"daily-model-requests": "7", "daily-model-cents": "50"}))
	ann := skill.Principal{ID: "ann", Tenant: "acme", Scopes: []string{skill.ScopeRead}}
	now := time.Now()
	kept := &records.Kept{Tenant: "acme", ExecutionID: "00000000-0000-7000-8000-000000000001", Items: []records.Item{{Name: "x", Data: make([]byte, 2<<20)}}, At: now, Until: now.Add(time.Hour)}
	musttest.Do(t, records.NewResults(h.kept.db).Put(t.Context(), kept, records.Room{Bytes: 1 << 30, Items: 10}))
	settle := musttest.Get(h.kept.quotas.Reserve(t.Context(), "acme", 100, 5_000_000))(t)
	settle(60, 2_000_000)
	u := musttest.Get(h.Usage(t.Context(), ann, ""))(t)
	stored := map[string]skill.StoredUsage{}
	for _, s := range u.Stored {
		stored[s.Kind] = s
	}
	for _, kind := range []string{"recordings", "conversations", "tasks", "results", "records", "keys", "definitions", "approvals"} {
		if _, ok := stored[kind]; !ok {
			t.Errorf("%s are missing", kind)
		}
	}
	if r := stored["results"]; r.Count != 1 || r.Bytes == nil || *r.Bytes != records.Size("x", 2<<20) || r.BytesLimit == nil || *r.BytesLimit != 1<<30 || r.CountLimit == nil {
		t.Errorf("results: %+v", r)
	}
	if r := stored["records"]; r.BytesLimit == nil || *r.BytesLimit != 100<<30 {
		t.Errorf("records: %+v", r)
	}
	if r := stored["recordings"]; r.CountLimit == nil || r.BytesLimit == nil {
		t.Errorf("recordings: %+v", r)
	}
	today := map[string][2]int64{}
	for _, d := range u.Today {
		if d.Limit == nil {
			d.Limit = new(int64)
		}
		today[d.Kind] = [2]int64{d.Used, *d.Limit}
	}
	if today["model_requests"] != [2]int64{1, 7} || today["model_tokens"][0] != 60 || today["model_cost"] != [2]int64{2000, 500_000} || today["calls"][1] != 0 || today["fuel"][1] != 0 || len(today) != 5 || u.Tenant != "acme" {
		t.Errorf("%s today: %v", u.Tenant, today)
	}
	if !u.ResetsAt.After(now) || u.ResetsAt.After(now.Add(25*time.Hour)) {
		t.Errorf("today ends at %s", u.ResetsAt)
	}
	if _, err := h.Usage(t.Context(), ann, "beta"); skill.CodeOf(err) != skill.Forbidden {
		t.Errorf("another tenant's: %v", err)
	}
	if _, err := h.Usage(t.Context(), skill.Principal{ID: "x", Scopes: []string{skill.ScopeRead}}, ""); skill.CodeOf(err) != skill.InvalidArgument {
		t.Errorf("of no tenant: %v", err)
	}
	if u, err := h.Usage(t.Context(), skill.Local(), "acme"); err != nil || u.Tenant != "acme" {
		t.Errorf("the operator: %+v, %v", u, err)
	}
}

// GET /usage is answered over HTTP, with uploads among what is stored.
func TestUsageOverHTTP(t *testing.T) {
	t.Parallel()
	v := talk(t, nil, llmtest.Rule{Say: "x"})
	res, err := http.Get(v.url + "/usage")
	musttest.Do(t, err)
	defer res.Body.Close()
	u := &skill.TenantUsage{}
	if err := json.NewDecoder(res.Body).Decode(u); err != nil || res.StatusCode != 200 || u.Tenant == "" || len(u.Stored) == 0 || u.Stored[0].Kind != "uploads" || u.Stored[0].CountLimit == nil {
		t.Errorf("%d %+v, %v", res.StatusCode, u, err)
	}
}
