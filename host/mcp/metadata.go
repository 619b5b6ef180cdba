package mcp

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// ResourceMetadata is the document (RFC 9728) by which clients of a resource, an address of
// this host, find the authorization server that issues tokens for it. scopes are those
// that a client should ask for; nil: none are named.
func ResourceMetadata(resource, issuer string, scopes []string) ([]byte, error) {
	return json.Marshal(oauthex.ProtectedResourceMetadata{
		Resource: resource, AuthorizationServers: []string{issuer}, ScopesSupported: scopes,
		BearerMethodsSupported: []string{"header"}, ResourceName: "openSkill",
	})
}
