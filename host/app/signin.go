package app

import (
	"openskill/host/api"
	"openskill/host/app/config"
	"openskill/host/console"
	"openskill/host/identity"
	"openskill/host/mcp"
	"openskill/sdk/skill"
)

// resource is what clients of MCP are told about where to get tokens. The address of the host
// is the operator's word alone: with the header Host, whoever sends a request would choose
// what the next client is told.
func resource(s *config.Settings) (r api.Resource, err error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	issuer, public := s.Provider(), s.PublicURL()
	if s.Auth == config.AuthNone || issuer == "" || public == "" {
		return r, nil
	}
	origin, path, err := skill.ParseHTTPOrigin(public)
	if err != nil {
		return r, err
	}
	scopes := api.MCPScopes()
	if s.JWTRoles != "" { // roles give scopes, and the provider knows none of ours
		scopes = s.OIDCScopeList()
	}
	r.Documents = map[string][]byte{}
	for _, p := range []string{path, path + "/mcp"} {
		if r.Documents[p], err = mcp.ResourceMetadata(origin.String()+p, issuer, scopes); err != nil {
			return r, err
		}
		r.URL = origin.String() + wellKnown + p
	}
	return r, nil
}

// provider signs people in to the console; nil: they show a key or a JWT.
func (h *Host) provider() console.Provider {
	s := h.settings
	if h.kept.callers == nil || s.OIDCClientID == "" {
		return nil
	}
	return identity.NewProvider(&identity.ProviderOptions{
		Issuer: s.Provider(), ClientID: s.OIDCClientID, ClientSecret: s.OIDCClientSecret, Scopes: s.OIDCScopeList(),
		Redirect: s.PublicURL() + console.CallbackPath, Log: h.log, Now: h.kept.log.DatabaseTime,
	})
}
