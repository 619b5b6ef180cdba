package host

import (
	"net/url"
	"strings"

	"openskill/host/access"
	"openskill/host/config"
	"openskill/host/httpapi"
	"openskill/host/mcpserver"
	"openskill/sdk/skill"
)

// provider gives the issuer of JWTs where that is an address, as one that signs people in has;
// "": no such issuer.
func provider(s *config.Settings) string {
	u, err := url.Parse(s.JWTIssuer)
	if s.Auth == config.AuthNone || s.JWTJWKS == "" || err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !config.Loopback(u.Hostname())) {
		return ""
	}
	return s.JWTIssuer
}

// resource is what clients of MCP are told about where to get tokens. The address of the host
// is the operator's word alone: with the header Host, whoever sends a request would choose
// what the next client is told.
func resource(s *config.Settings) (r httpapi.Resource, err error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	issuer := provider(s)
	origin, path, err := skill.ParseHTTPOrigin(s.HTTPBaseURL)
	if err != nil || issuer == "" || s.Origin("OPENSKILL_HTTP_BASE_URL") == config.FromDefault {
		return r, err
	}
	var scopes []string
	if s.JWTRoles == "" { // where roles give scopes, the provider knows none of ours
		scopes = access.MCPScopes()
	}
	path = strings.TrimSuffix(path, "/")
	r.Documents = map[string][]byte{}
	for _, p := range []string{path, path + "/mcp"} {
		if r.Documents[p], err = mcpserver.ResourceMetadata(origin.String()+p, issuer, scopes); err != nil {
			return r, err
		}
		r.URL = origin.String() + wellKnown + p
	}
	return r, nil
}
