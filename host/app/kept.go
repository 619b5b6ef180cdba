package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"openskill/host/agent/llm"
	"openskill/host/app/config"
	"openskill/host/dispatch"
	"openskill/host/dispatch/quota"
	"openskill/host/identity"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// kept is what outlives the process: the database and what is built on it.
type kept struct {
	db         *store.DB
	log        *records.Log
	executions *records.Manager
	files      *records.Files
	spaces     *records.Workspaces
	sessions   *records.Sessions
	quotas     *quota.Quotas
	callers    *identity.Authenticator // nil: nobody is asked
}

// opening is how long the database may take to open and to be brought up to date.
const opening = 5 * time.Minute

// openKept opens the database of the settings. There is no host without one: no run
// may begin that is not on record.
func (h *Host) openKept() error {
	s := h.settings
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	k := &h.kept
	h.owns(k.end)
	var err error
	if k.db, err = OpenStore(ctx, s, h.log); err != nil {
		return err
	}
	k.log, err = records.Open(ctx, recordOptions(s, k.db, h.log))
	if err != nil {
		return err
	}
	if err := k.sameClock(); err != nil {
		return err
	}
	k.executions, err = records.NewManager(records.ManagerOptions{Now: k.log.DatabaseTime, Records: k.log.Store(), Results: records.NewResults(k.db), Keep: s.ResultTime(), Logs: records.Logs(s.KeepLogs), Log: h.log, Replay: h.replay, Alone: h.alone, Queue: &records.QueueOptions{DB: k.db, Record: k.log, Post: h.post()}})
	if err != nil {
		return err
	}
	k.files = records.NewFiles(records.FilesOptions{DB: k.db, Dir: func(tenant string) string { return filesDir(s, tenant) }, Keep: s.ResultTime(), Log: h.log, Now: k.log.DatabaseTime})
	k.spaces = records.NewWorkspaces(k.files)
	k.sessions = records.NewSessions(records.SessionsOptions{Files: k.files, Workspaces: k.spaces})
	limits := quotaLimits(s)
	limits.Store, limits.Log, limits.Now = quota.NewStore(k.db), h.log, k.log.DatabaseTime
	limits.Refused = func(what, unit string) { h.metrics.QuotaRefused(what, unit) } // which is made later
	if k.quotas, err = quota.New(limits); err != nil {
		return err
	}
	if s.Auth == config.AuthNone {
		return nil
	}
	k.callers, err = identity.New(identity.Options{
		Keys: identity.NewKeyStore(k.db), Secret: s.JWTSecret, KeySet: s.JWTJWKS, Issuer: s.JWTIssuer, Audience: s.JWTAudience, Skew: clockSkew,
		Claims: identity.Claims(s.JWTClaimNames()), Tenant: s.JWTTenant, Roles: s.JWTRoleScopes(),
		Anonymous: s.Anonymous(), Log: h.log, Now: k.log.DatabaseTime,
	})
	return err
}

// recordOptions are how the records of a host with these settings are written.
func recordOptions(s *config.Settings, db *store.DB, log *slog.Logger) records.Options {
	return records.Options{
		Store: records.NewStore(db), Policy: records.Policy(s.AuditPayload), Retention: s.AuditRetention(), Log: log,
		Journal: db.Journals, Direct: db.RecordsIn == store.InDatabase, Sync: db.RecordsIn == store.OnDisk,
	}
}

// Recover writes the records that killed hosts with these settings left to the database.
func Recover(ctx context.Context, s *config.Settings, db *store.DB, log *slog.Logger) error {
	return records.Recover(ctx, recordOptions(s, db, log))
}

// clockSkew is how far the clock of an issuer of JWTs may be from this host's.
const clockSkew = 30 * time.Second

// sameClock refuses a host on a shared database whose clock is far from the database's: its
// records would have wrong times, and keys and tokens would end at others.
func (k *kept) sameClock() error {
	if ahead := k.log.Skew(); k.db.Kind() == store.Postgres && ahead.Abs() > records.MaxSkew {
		return &skill.Error{
			Op: "host.Open", Code: skill.Conflict, Subject: "OPENSKILL_DATABASE_URL",
			Message: clockOff(ahead),
		}
	}
	return nil
}

// clockOff says what is wrong with a clock that is not that of the database.
func clockOff(ahead time.Duration) string {
	than := "ahead of"
	if ahead < 0 {
		than = "behind"
	}
	return fmt.Sprintf("the clock of this host is %s %s the database's: set both clocks by NTP; a host that is more than %s away from a PostgreSQL database does not start",
		ahead.Abs().Round(time.Millisecond), than, records.MaxSkew)
}

// quotaLimits are the limits of callers by the settings.
func quotaLimits(s *config.Settings) quota.Options {
	return quota.Options{
		RateTenant: s.RateTenant, RatePrincipal: s.RatePrincipal,
		DailyExecutions: s.DailyExecutions, DailyFuel: s.DailyFuel,
		DailyModelRequests: s.DailyModelRequests, DailyModelTokens: s.DailyModelTokens, DailyModelCost: int64(s.DailyModelCents) * int64(llm.Dollar/100), // at most a million dollars by its range
	}
}

// callBounds are how many calls run at once by the settings.
func callBounds(s *config.Settings) dispatch.Bounds {
	b := dispatch.Bounds{Global: s.Concurrency, PerSkill: s.ConcurrencyPerSkill}
	if s.Auth != config.AuthNone { // where nobody is asked, the one who calls has the host
		b.PerTenant, b.PerPrincipal = s.ConcurrencyTenant, s.ConcurrencyPrincipal
	}
	return b
}

// callable refuses to begin where nobody could call: on an address that others reach,
// without a setting that says how callers show who they are, and without a key. It is
// more likely that nobody thought of it than that it is meant.
func (h *Host) callable() error {
	s := h.settings
	if h.kept.callers == nil || s.Origin("OPENSKILL_AUTH") != config.FromDefault || s.JWTSecret != "" || s.JWTJWKS != "" || s.AnonymousScopes != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	keys, _, err := identity.NewKeyStore(h.kept.db).Keys(ctx, identity.KeyQuery{Limit: 1})
	if err != nil {
		return fmt.Errorf("host.Open: looking for keys: %w", err)
	}
	if len(keys) > 0 {
		return nil
	}
	return &skill.Error{
		Op: "host.Open", Code: skill.InvalidArgument, Subject: "OPENSKILL_LISTEN",
		Message: fmt.Sprintf("OPENSKILL_LISTEN %q is reachable from other machines, but no authentication is configured: create a key with openskill keys create, or set OPENSKILL_JWT_SECRET or OPENSKILL_JWT_JWKS", s.Listen),
	}
}

// Record is where runs are on record.
func (h *Host) Record() *records.Log { return h.kept.log }

// OpenStore opens the database that settings name.
func OpenStore(ctx context.Context, s *config.Settings, log *slog.Logger) (*store.DB, error) {
	db, err := store.Open(ctx, store.Options{
		URL: s.DatabaseURL, StateDir: s.StateDir, Log: log,
		Recordings: store.Quota{Bytes: int64(s.RecordingsMB) << 20}, Conversations: store.Quota{Bytes: int64(s.AgentStoredMB) << 20}, // at most 16 TiB by their ranges
		Records: store.Quota{Bytes: int64(s.AuditMB) << 20},
	})
	if err != nil {
		return nil, fmt.Errorf("the database: %w", err)
	}
	return db, nil
}

// end closes what is kept, after the last run has ended.
func (k *kept) end() error {
	if k.sessions != nil { // with a separate timeout, so that the records still have time to close
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		k.sessions.FreezeAll(ctx)
		cancel()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	var errs []error
	if k.executions != nil {
		errs = append(errs, k.executions.Close(ctx))
	}
	if k.quotas != nil {
		errs = append(errs, k.quotas.Close())
	}
	if k.callers != nil {
		errs = append(errs, k.callers.Close())
	}
	if k.log != nil {
		errs = append(errs, k.log.Close(ctx))
	}
	if k.db != nil {
		errs = append(errs, k.db.Close())
	}
	return errors.Join(errs...)
}
