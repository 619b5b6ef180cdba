package app

import (
	"context"
	"log/slog"
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

// RecordDefinitions puts changes of the operator's skills on record.
func recordDefinitions(db *store.DB) func(ctx context.Context, by skill.Principal, what string, id skill.ID, do func() error) error {
	return func(ctx context.Context, by skill.Principal, what string, id skill.ID, do func() error) error {
		return records.Around(ctx, records.NewStore(db), by, records.Change{Action: "definition." + what, Subject: string(id)}, do)
	}
}

// RecordApprovals puts decisions about scripts on record.
func RecordApprovals(db *store.DB) approval.Record {
	return func(ctx context.Context, by skill.Principal, a *approval.Approval, do func() error) error {
		return records.Around(ctx, records.NewStore(db), by, records.Change{
			Tenant: a.Tenant, Action: "script." + string(a.State), Subject: a.Skill + "/" + a.Script,
			Details: map[string]string{"approval": a.ID, "digest": a.Digest},
		}, do)
	}
}

// hostItself is who makes the changes that nobody asked for.
var hostItself = skill.Principal{ID: "host", Type: skill.Operator, Tenant: skill.Local().Tenant}

// recordQuarantine puts what the host takes out of service on record. A version that does harm
// is taken out of service even when that cannot be put on record.
func recordQuarantine(db *store.DB, log *slog.Logger) func(tenant string, id skill.ID, version, reason string, do func() error) error {
	return func(tenant string, id skill.ID, version, reason string, do func() error) error {
		done := false
		c := records.Change{Tenant: tenant, Action: "skill.quarantine", Subject: string(id), Details: map[string]string{"version": version, "reason": reason}}
		err := records.Around(context.Background(), records.NewStore(db), hostItself, c, func() error {
			done = true
			return do()
		})
		if done {
			return err
		}
		log.Warn("cannot record a quarantine", slog.String("tenant", skill.CleanText(tenant, 128)), slog.String("skill_id", string(id)), slog.String("version", version), slog.String("error", err.Error()))
		return do()
	}
}
