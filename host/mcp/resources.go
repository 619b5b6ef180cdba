package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/sdk/skill"
)

const (
	scheme    = "skill://"
	skillFile = "SKILL.md"
	markdown  = "text/markdown"
	directory = "inode/directory"
)

// uriOf names a file of a skill; "" is its root. The skill's name stands where other
// schemes have a host, and is never looked up.
func uriOf(name, file string) string {
	if file == "" {
		return scheme + name
	}
	parts := strings.Split(file, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return scheme + name + "/" + strings.Join(parts, "/")
}

// parseURI is the skill and file that a URI names. It gives no file that could be
// outside of the skill's folder.
func parseURI(uri string) (name, file string, ok bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok || len(uri) > 4096 {
		return "", "", false
	}
	name, path, deeper := strings.Cut(rest, "/")
	if !skill.ValidAgentSkillName(name) || deeper && path == "" {
		return "", "", false
	}
	if !deeper {
		return name, "", true
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\\\x00") || !utf8.ValidString(plain) {
			return "", "", false
		}
		parts[i] = plain
	}
	return name, strings.Join(parts, "/"), true
}

// files are those of a skill beside SKILL.md, in order of name and each once.
func files(s *skill.AgentSkill) []skill.AgentFile {
	list := slices.Concat(s.Resources, s.Scripts)
	slices.SortStableFunc(list, func(a, b skill.AgentFile) int { return cmp.Compare(a.Name, b.Name) })
	list = slices.CompactFunc(list, func(a, b skill.AgentFile) bool { return a.Name == b.Name })
	return slices.DeleteFunc(list, func(f skill.AgentFile) bool { return f.Name == skillFile })
}

// skillResource is the SKILL.md of a skill as a resource.
func skillResource(s *skill.AgentSkill) *mcp.Resource {
	return &mcp.Resource{URI: uriOf(s.Name, skillFile), Name: s.Name, Description: s.Description, MIMEType: markdown}
}

func fileResource(skillName string, f *skill.AgentFile) *mcp.Resource {
	return &mcp.Resource{
		URI: uriOf(skillName, f.Name), Name: f.Name[strings.LastIndexByte(f.Name, '/')+1:],
		Description: f.Description, MIMEType: f.MediaType, Size: f.Size,
	}
}

// visible are the Agent Skills that the caller may see.
func (c *caller) visible(ctx context.Context) ([]skill.AgentSkill, error) {
	if !c.p.May(skill.ScopeRead) {
		return nil, nil
	}
	return c.s.opt.AgentSkills.List(ctx, c.p)
}

// load gives one of them and the text of its SKILL.md.
func (c *caller) load(ctx context.Context, name string) (skill.AgentSkill, string, error) {
	if !c.p.May(skill.ScopeRead) {
		return skill.AgentSkill{}, "", notFound("mcpserver.load", name, "there is no Agent Skill of this name")
	}
	return c.s.opt.AgentSkills.Load(ctx, c.p, name)
}

// listResources gives the files of all skills: by name of the skill, SKILL.md first.
func (c *caller) listResources(ctx context.Context, r *mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	cursor := ""
	if r.Params != nil {
		cursor = r.Params.Cursor
	}
	last, err := decodeCursor("resources", cursor)
	if err != nil {
		return nil, err
	}
	list, err := c.visible(ctx)
	if err != nil {
		return nil, err
	}
	type entry struct {
		key string // skill/file
		r   *mcp.Resource
	}
	lastSkill, lastFile, _ := strings.Cut(last, "/")
	var all []entry // those after last, until there are more than a page
	for i := 0; i < len(list) && len(all) <= pageSize; i++ {
		s := &list[i]
		if s.Name < lastSkill {
			continue
		}
		if s.Name != lastSkill {
			all = append(all, entry{s.Name + "/", skillResource(s)})
		}
		for _, f := range files(s) {
			if s.Name != lastSkill || f.Name > lastFile {
				all = append(all, entry{s.Name + "/" + f.Name, fileResource(s.Name, &f)})
			}
		}
	}
	res := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}, Cacheable: uncached}
	if r.ProtocolVersion() >= stateless {
		res.ResultType = complete
	}
	for i := range min(len(all), pageSize) {
		res.Resources = append(res.Resources, all[i].r)
	}
	if len(all) > pageSize {
		res.NextCursor = encodeCursor("resources", all[pageSize-1].key)
	}
	return res, nil
}

func (c *caller) listTemplates(r *mcp.ListResourceTemplatesRequest) (*mcp.ListResourceTemplatesResult, error) {
	res := &mcp.ListResourceTemplatesResult{ResourceTemplates: []*mcp.ResourceTemplate{}, Cacheable: uncached}
	if r.ProtocolVersion() >= stateless {
		res.ResultType = complete
	}
	if r.Params != nil && r.Params.Cursor != "" {
		return nil, invalid("mcpserver.cursor", "cursor", "the template list has one page; send no cursor")
	}
	if c.p.May(skill.ScopeRead) {
		res.ResourceTemplates = append(res.ResourceTemplates, &mcp.ResourceTemplate{
			URITemplate: scheme + "{skill}/{+path}", Name: "file of an Agent Skill",
			Description: "A file of an Agent Skill by its path in the skill's folder; SKILL.md has the instructions.",
		})
	}
	return res, nil
}

func (c *caller) readResource(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	if id, name, ok := artifactOf(r.Params.URI); ok {
		return c.readArtifact(ctx, r, id, name)
	}
	name, file, ok := parseURI(r.Params.URI)
	if !ok || file == "" {
		return nil, noResource(r.Params.URI)
	}
	s, text, err := c.load(ctx, name)
	if err != nil {
		return nil, resourceError(r.Params.URI, err)
	}
	out := c.outgoing(r)
	content := &mcp.ResourceContents{URI: r.Params.URI, MIMEType: markdown}
	if file == skillFile {
		out.holding(len(text))
		content.Text = out.content([]byte(text))
	} else {
		got, err := c.read(ctx, &s, file)
		if err != nil {
			return nil, resourceError(r.Params.URI, err)
		}
		content.MIMEType = got.MediaType
		out.fill(content, got.Data)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}, Cacheable: uncached}, nil
}

// read gives a file that the skill lists, and no other.
func (c *caller) read(ctx context.Context, s *skill.AgentSkill, file string) (skill.AgentResource, error) {
	const op = "mcpserver.read"
	list := files(s)
	i := slices.IndexFunc(list, func(f skill.AgentFile) bool { return f.Name == file })
	if i < 0 {
		return skill.AgentResource{}, notFound(op, file, "file not found in the skill; resources/list names all")
	}
	if list[i].Size > c.s.opt.ResourceLimit {
		return skill.AgentResource{}, c.tooLarge(file)
	}
	got, err := c.s.opt.AgentSkills.ReadResource(ctx, c.p, s.Name, file)
	if err == nil && int64(len(got.Data)) > c.s.opt.ResourceLimit {
		return skill.AgentResource{}, c.tooLarge(file)
	}
	return got, err
}

func (c *caller) tooLarge(file string) error {
	return &skill.Error{
		Op: "mcpserver.read", Code: skill.PayloadTooLarge, Subject: skill.CleanText(file, 80),
		Message: fmt.Sprintf("the file exceeds the limit of %d bytes; use a script of the skill to read it", c.s.opt.ResourceLimit),
	}
}

// isText reports whether bytes come through JSON as they are, and are for reading.
func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

func noResource(uri string) error {
	data, _ := json.Marshal(map[string]string{"uri": skill.CleanText(uri, 200)}) // plain data
	return &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams, Data: data,
		Message: "resource not found; Agent Skills have skill://NAME/SKILL.md and skill://NAME/PATH; resources/list names all",
	}
}

// resourceError says of a skill that is not there what is said of a file.
func resourceError(uri string, err error) error {
	if skill.CodeOf(err) == skill.NotFound {
		return noResource(uri)
	}
	return err
}
