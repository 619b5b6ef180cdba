package main

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"openskill/internal/cliflag"
	"openskill/sdk/client"
)

// remoteFlags name a running host.
type remoteFlags struct{ remote, keyEnv string }

// bind adds the flags to a command; what says what the host is for.
func (o *remoteFlags) bind(cmd *cobra.Command, what string) {
	cmd.Flags().Var(cliflag.Text(&o.remote, "URL"), "remote", "URL of a running host "+what)
	cmd.Flags().Var(cliflag.Text(&o.keyEnv, "NAME"), "key-env", "environment variable with the API key of that host")
}

// client is of the host that the flags name.
func (o *remoteFlags) client(a *cli, agent string) (*client.Client, error) {
	key := ""
	if o.keyEnv != "" {
		if key = a.environment(o.keyEnv); key == "" {
			return nil, usage("--key-env %s: this environment variable is unset or empty", quote(o.keyEnv))
		}
	}
	c, err := client.New(o.remote, &client.Options{Key: key, UserAgent: agent})
	if err != nil {
		return nil, usage("--remote: %s", strings.TrimPrefix(err.Error(), "client: "))
	}
	if key != "" && readByOthers(o.remote) {
		a.say("openskill: the key is sent to %s unencrypted; use https://", quote(o.remote))
	}
	return c, nil
}

// readByOthers reports whether what is sent to an address, which client.New takes, leaves
// this machine as it is.
func readByOthers(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "https" || u.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback()
}
