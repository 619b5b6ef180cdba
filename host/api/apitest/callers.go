package apitest

import (
	"context"
	"strings"

	"openskill/host/identity"
	"openskill/sdk/skill"
)

// As lets every request act for one principal.
func As(p skill.Principal) func(context.Context, identity.Credentials) (skill.Principal, error) {
	return func(context.Context, identity.Credentials) (skill.Principal, error) { return p, nil }
}

// Keys are principals by what they show: the word after "Bearer " or the value of
// X-API-Key. Who shows nothing is the one under "", if there is one.
type Keys map[string]skill.Principal

// Authenticate finds the principal of a request.
func (k Keys) Authenticate(_ context.Context, c identity.Credentials) (skill.Principal, error) {
	shown := append([]string(nil), c.APIKey...)
	for _, v := range c.Authorization {
		shown = append(shown, strings.TrimPrefix(v, "Bearer "))
	}
	if len(shown) == 0 {
		shown = []string{""}
	}
	p, ok := k[shown[0]]
	if !ok || len(shown) > 1 || c.Query {
		return skill.Principal{}, &skill.Error{Op: "httpapitest.Keys", Code: skill.Unauthorized, Message: "no such key: " + shown[0]}
	}
	return p, nil
}
