package app

import (
	"context"
	"strings"
	"time"

	"openskill/host/dispatch/approval"
	"openskill/host/identity"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// Each function here puts a kind of change on record before it is made; see [records.Around].

// ManageKeys gives the keys of a database as a principal changes them, on record.
func ManageKeys(db *store.DB, by skill.Principal) *identity.Keys {
	return identity.NewKeys(identity.NewKeyStore(db)).Recorded(func(ctx context.Context, what string, k *identity.Key, do func() error) error {
		details := map[string]string{"name": k.Name, "scopes": strings.Join(k.Scopes, " ")}
		if !k.ExpiresAt.IsZero() {
			details["expires_at"] = k.ExpiresAt.UTC().Format(time.RFC3339)
		}
		return records.Around(ctx, records.NewStore(db), by, records.Change{Tenant: k.Tenant, Action: "key." + what, Subject: k.ID, Details: details}, do)
	})
}

// RecordApprovals puts decisions on record.
func RecordApprovals(db *store.DB) approval.Record {
	return func(ctx context.Context, by skill.Principal, a *approval.Approval, do func() error) error {
		what, subject := "script.", a.Skill+"/"+a.Script
		if a.Policy == approval.Enabling {
			what, subject = "proposal.", a.Skill+"@"+a.Version
		}
		return records.Around(ctx, records.NewStore(db), by, records.Change{
			Tenant: a.Tenant, Action: what + string(a.State), Subject: subject,
			Details: map[string]string{"approval": a.ID, "digest": a.Digest},
		}, do)
	}
}
