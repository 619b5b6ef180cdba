package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/identity"
	"openskill/host/store"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

func (a *cli) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Create, rotate and revoke API keys",
		Long: `Manage the API keys of agents in the database of the settings. Every host on that
database applies changes within a second. A key is shown once, when it is created; only
its hash is stored.`,
		Example: `  openskill keys create --name reports --tenant acme --scopes skills:read,skills:invoke
  openskill keys revoke pvgqyfyx5dc6zpxs`,
	}
	group(cmd)
	cmd.AddCommand(a.keysCreateCommand(), a.keysListCommand(), a.keysShowCommand(), a.keysRotateCommand(), a.keysRevokeCommand())
	return cmd
}

// withKeys opens the keys of the settings' database, which only the first key makes, for as
// long as do takes.
func (a *cli) withKeys(ctx context.Context, flags *settingsFlags, first bool, do func(*identity.Keys) error) error {
	return a.withDatabase(ctx, flags, !first, keysFailed, func(db *store.DB) error { return do(app.ManageKeys(db, skill.Local())) })
}

// keysFailed says whose fault an error is.
func keysFailed(err error) error {
	var e *skill.Error
	if !errors.As(err, &e) {
		return hostFailed(err)
	}
	switch e.Code { //nolint:exhaustive // the others are the host's
	case skill.InvalidArgument:
		return usage("%s", e.Message)
	case skill.NotFound, skill.Conflict:
		return failed(e.Code, "%s", e.Message)
	}
	if e.Err != nil {
		return hostFailed(fmt.Errorf("%s: %w", e.Message, e.Err))
	}
	return hostFailed(errors.New(e.Message))
}

// shownKey is a key as --json prints it. Times that never come are null.
type shownKey struct {
	ID         string     `json:"id"`
	Key        string     `json:"key,omitempty"` // once
	Name       string     `json:"name"`
	Tenant     string     `json:"tenant"`
	Scopes     []string   `json:"scopes"`
	Principal  string     `json:"principal"`
	State      string     `json:"state"`
	CreatedAt  *time.Time `json:"created_at"`
	CreatedBy  string     `json:"created_by"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RotatedAt  *time.Time `json:"rotated_at"`
	OldUntil   *time.Time `json:"old_key_until"`
	RevokedAt  *time.Time `json:"revoked_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
}

func showKey(k *identity.Key, text string) shownKey {
	return shownKey{
		ID: k.ID, Key: text, Name: k.Name, Tenant: k.Tenant, Scopes: k.Scopes, Principal: k.Principal().ID, State: k.State(time.Now()),
		CreatedAt: orNull(k.CreatedAt), CreatedBy: k.CreatedBy, ExpiresAt: orNull(k.ExpiresAt), RotatedAt: orNull(k.RotatedAt),
		OldUntil: orNull(k.OldUntil), RevokedAt: orNull(k.RevokedAt), LastUsedAt: orNull(k.LastUsedAt),
	}
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// printKey prints one key, with its text if it has just been made.
func (a *cli) printKey(k *identity.Key, text string, asJSON bool) error {
	var err error
	if asJSON {
		err = a.printJSON(showKey(k, text))
	} else {
		err = a.print("%s", keyLines(k, text))
	}
	switch {
	case text == "":
		return err
	case err != nil:
		return hostFailed(fmt.Errorf("key %s was created but could not be printed; run openskill keys rotate %s --overlap 0s for a new secret: %w", k.ID, k.ID, err))
	}
	if !asJSON {
		a.say("openskill: this key cannot be shown again; store it safely")
	}
	return nil
}

func keyLines(k *identity.Key, text string) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-13s  %s\n", name, value)
		}
	}
	line("key", text)
	line("id", k.ID)
	line("name", skill.CleanText(k.Name, 200))
	line("tenant", skill.CleanText(k.Tenant, 80))
	line("scopes", strings.Join(k.Scopes, ","))
	line("principal", k.Principal().ID)
	line("state", k.State(time.Now()))
	line("created", moment(k.CreatedAt, "")+" by "+skill.CleanText(k.CreatedBy, 80))
	line("expires", moment(k.ExpiresAt, "never"))
	line("rotated", moment(k.RotatedAt, ""))
	if !k.OldUntil.IsZero() && k.OldUntil.After(time.Now()) {
		line("old key until", moment(k.OldUntil, ""))
	}
	line("revoked", moment(k.RevokedAt, ""))
	line("last used", moment(k.LastUsedAt, "never"))
	return b.String()
}

// moment is a time for people, in whole seconds; none is what is given for it.
func moment(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format(time.RFC3339)
}

func (a *cli) keysCreateCommand() *cobra.Command {
	var asJSON bool
	var name, tenant, scopes, expires string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a key and show it",
		Long: `Create a key for an agent of a tenant and show it once. Scopes are
` + strings.Join(skill.Scopes(), ", ") + `,
and skills:invoke:ID for calls of one skill.`,
		Example: "  openskill keys create --name reports --tenant acme --scopes skills:read,skills:invoke:echo --expires 720h --json",
		Args:    takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().Var(cliflag.Text(&name, "NAME"), "name", "name of the key")
	cmd.Flags().Var(cliflag.Text(&tenant, "TENANT"), "tenant", "tenant of the key")
	cmd.Flags().Var(cliflag.Text(&scopes, "SCOPES"), "scopes", "comma-separated scopes of the key")
	cmd.Flags().Var(cliflag.Text(&expires, "TIME"), "expires", "lifetime, such as 720h, at most ten years, or never; default: 8760h (one year)")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"id", "key", …}`)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		n := identity.NewKey{Name: name, Tenant: tenant, By: skill.Local().ID, Scopes: splitScopes(scopes)}
		for _, f := range []struct{ flag, value string }{{"name", name}, {"tenant", tenant}, {"scopes", scopes}} {
			if f.value == "" {
				return usage("%s needs --%s", cmd.CommandPath(), f.flag)
			}
		}
		var err error
		if n.Life, err = lifeFlag(expires); err != nil {
			return err
		}
		return a.withKeys(cmd.Context(), flags, true, func(keys *identity.Keys) error {
			k, text, err := keys.Create(cmd.Context(), n)
			if err != nil {
				return keysFailed(err)
			}
			return a.printKey(k, text, asJSON)
		})
	}
	return cmd
}

// splitScopes takes commas and spaces, of which one is seldom meant.
func splitScopes(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

func lifeFlag(s string) (time.Duration, error) {
	switch s {
	case "":
		return 0, nil
	case "never":
		return identity.Never, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > identity.LongestLife {
		return 0, usage("--expires %s: invalid lifetime: use a duration such as 720h, at most %d h, or never", quote(s), int(identity.LongestLife.Hours()))
	}
	return d, nil
}

func (a *cli) keysListCommand() *cobra.Command {
	var asJSON bool
	var tenant string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the keys, newest first",
		Long:    "List the keys, newest first, including revoked and expired ones.",
		Example: "  openskill keys list --tenant acme",
		Args:    takes(0, 0),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().Var(cliflag.Text(&tenant, "TENANT"), "tenant", "only those of this tenant")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"data": […]}`)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if tenant != "" && !identity.ValidTenant(tenant) {
			return usage("--tenant %s: invalid tenant: use 1 to 64 of A-Z, a-z, 0-9, ., _, : and -", quote(tenant))
		}
		return a.withKeys(cmd.Context(), flags, false, func(keys *identity.Keys) error {
			all, err := everyPage(func(cursor string) ([]*identity.Key, string, error) {
				return keys.List(cmd.Context(), identity.KeyQuery{Tenant: tenant, Limit: identity.MaxKeyPage, Cursor: cursor})
			})
			switch {
			case err != nil:
				return keysFailed(err)
			case !asJSON:
				return a.print("%s\n", keyTable(all))
			}
			shown := make([]shownKey, len(all))
			for i, k := range all {
				shown[i] = showKey(k, "")
			}
			return a.printJSON(listOf[shownKey]{shown})
		})
	}
	return cmd
}

func keyTable(all []*identity.Key) string {
	t := newTable("ID", "NAME", "TENANT", "STATE", "SCOPES", "CREATED", "EXPIRES", "LAST USED")
	for _, k := range all {
		t.row(
			k.ID, skill.CleanText(k.Name, 40), skill.CleanText(k.Tenant, 64), k.State(time.Now()), skill.CleanText(strings.Join(k.Scopes, ","), 80),
			moment(k.CreatedAt, ""), moment(k.ExpiresAt, "never"), moment(k.LastUsedAt, "never"),
		)
	}
	return t.String()
}

// keyID reads the argument that names a key. What is no id is not repeated: it may be a
// key that was mistyped.
func keyID(cmd *cobra.Command, arg string) (string, error) {
	id, ok := identity.ParseKeyID(arg)
	if !ok {
		return "", usage("%s needs a key id, %d characters of a-z and 2-7; see openskill keys list", cmd.CommandPath(), identity.KeyIDLength)
	}
	return id, nil
}

func (a *cli) keysShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show the details of a key",
		Long:    "Show the details of a key, but not its secret: that is not stored.",
		Example: "  openskill keys show pvgqyfyx5dc6zpxs",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := keyID(cmd, args[0])
		if err != nil {
			return err
		}
		return a.withKeys(cmd.Context(), flags, false, func(keys *identity.Keys) error {
			k, err := keys.Get(cmd.Context(), id)
			if err != nil {
				return keysFailed(err)
			}
			return a.printKey(k, "", asJSON)
		})
	}
	return cmd
}

func (a *cli) keysRotateCommand() *cobra.Command {
	var asJSON bool
	var overlap string
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Rotate a key's secret and show it",
		Long: `Give a key a new secret and show it once. The previous secret stays valid for the
overlap; older ones end at once. Id, tenant, scopes and expiry stay.`,
		Example: "  openskill keys rotate pvgqyfyx5dc6zpxs --overlap 1h",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().Var(cliflag.Text(&overlap, "TIME"), "overlap", "time that the old key stays valid, from 0s to 720h; default: 24h")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"id", "key", …}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := keyID(cmd, args[0])
		if err != nil {
			return err
		}
		d := identity.DefaultOverlap
		if cmd.Flags().Changed("overlap") {
			if d, err = time.ParseDuration(overlap); err != nil || d < 0 || d > identity.LongestOverlap {
				return usage("--overlap %s: invalid duration: use one such as 30m or 24h, from 0s to %d h", quote(overlap), int(identity.LongestOverlap.Hours()))
			}
		}
		return a.withKeys(cmd.Context(), flags, false, func(keys *identity.Keys) error {
			k, text, err := keys.Rotate(cmd.Context(), id, d)
			if err != nil {
				return keysFailed(err)
			}
			return a.printKey(k, text, asJSON)
		})
	}
	return cmd
}

func (a *cli) keysRevokeCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "revoke ID…",
		Short: "Revoke keys on every host within one second",
		Long: `Revoke keys permanently, on every host within one second. Calls, tasks, chat turns and
MCP sessions of a key end within two seconds. The key itself is accepted as ID too, for
keys found in the wrong place.`,
		Example: "  openskill keys revoke pvgqyfyx5dc6zpxs",
		Args:    takes(1, many),
	}
	flags := bindSettings(cmd, "state")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids := make([]string, len(args))
		for i, arg := range args {
			var err error
			if ids[i], err = keyID(cmd, arg); err != nil {
				return err
			}
		}
		return a.withKeys(cmd.Context(), flags, false, func(keys *identity.Keys) error {
			for _, id := range ids {
				if err := a.revoke(cmd.Context(), keys, id, asJSON); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

func (a *cli) revoke(ctx context.Context, keys *identity.Keys, id string, asJSON bool) error {
	k, err := keys.Revoke(ctx, id)
	switch {
	case err != nil && skill.CodeOf(err) == skill.NotFound:
		return failed(skill.NotFound, "%s: key not found; openskill keys list shows all", id)
	case err != nil:
		return keysFailed(err)
	case asJSON:
		return a.printJSON(showKey(k, ""))
	}
	return a.print("%s: the key %s of %s is revoked since %s\n", k.ID, quote(k.Name), skill.CleanText(k.Tenant, 80), moment(k.RevokedAt, ""))
}
