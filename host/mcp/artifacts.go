package mcp

import (
	"cmp"
	"context"
	"mime"
	"net/url"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/sdk/skill"
)

// artifactScheme is the prefix of artifact URIs. The HTTP path of the artifact follows.
const artifactScheme = "openskill:/"

// mostImage is the maximum size of an inline image in bytes.
const mostImage = 1 << 20

// artifacts returns a resource link for each artifact, and small images inline as well.
func (b *bodies) artifacts(list []skill.Artifact) (content []mcp.Content) {
	for i := range list {
		a := &list[i]
		if kind := imageKind(a.Name); kind != "" && len(a.Data) > 0 && len(a.Data) <= mostImage {
			b.holding(len(a.Data))
			content = append(content, &mcp.ImageContent{Data: b.blob(a.Data), MIMEType: kind})
		}
		kind := mime.TypeByExtension(path.Ext(a.Name))
		if a.URL != "" {
			content = append(content, &mcp.ResourceLink{URI: artifactScheme + a.URL, Name: a.Name, MIMEType: cmp.Or(kind, "application/octet-stream"), Size: &a.Size})
		}
	}
	return content
}

// imageKind is the media type of an image that clients show; "" of other files.
func imageKind(name string) string {
	kind := mime.TypeByExtension(path.Ext(name))
	if !strings.HasPrefix(kind, "image/") || strings.Contains(kind, "svg") {
		return ""
	}
	return kind
}

// artifactOf parses an artifact URI.
func artifactOf(uri string) (executionID, name string, ok bool) {
	rest, ok := strings.CutPrefix(uri, artifactScheme+"/executions/")
	if !ok || len(uri) > 4096 {
		return "", "", false
	}
	executionID, escaped, ok := strings.Cut(rest, "/artifacts/")
	name, err := url.PathUnescape(escaped)
	return executionID, name, ok && err == nil && name != ""
}

// readArtifact answers resources/read of an artifact.
func (c *caller) readArtifact(ctx context.Context, r *mcp.ReadResourceRequest, executionID, name string) (*mcp.ReadResourceResult, error) {
	if c.s.opt.Artifact == nil {
		return nil, noResource(r.Params.URI)
	}
	data, err := c.s.opt.Artifact(ctx, c.p, executionID, name)
	switch {
	case err != nil:
		return nil, resourceError(r.Params.URI, err)
	case int64(len(data)) > c.s.opt.ResourceLimit:
		return nil, c.tooLarge(name)
	}
	content := &mcp.ResourceContents{URI: r.Params.URI, MIMEType: mime.TypeByExtension(path.Ext(name))}
	c.outgoing(r).fill(content, data)
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}, Cacheable: uncached}, nil
}

// fill sets the content of a resource, as text if data is text.
func (b *bodies) fill(content *mcp.ResourceContents, data []byte) {
	b.holding(len(data))
	if isText(data) {
		content.Text, content.MIMEType = b.content(data), cmp.Or(content.MIMEType, "text/plain")
	} else {
		content.Blob, content.MIMEType = b.blob(data), cmp.Or(content.MIMEType, "application/octet-stream")
	}
}
