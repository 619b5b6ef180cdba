package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// What follows is the Skills extension, io.modelcontextprotocol/skills, of its stable
// specification (SEP-2640): skills/list, skills/get and resources/directory/read.

// The bounds that the extension puts on a skill. One that goes beyond them has its
// files listed by nobody, and is called dynamic.
const (
	mostFiles = 512
	mostBytes = 16 << 20
)

// skillsPage is how many entries a page has: each one may take reading its files.
const skillsPage = 20

type skillEntry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   json.RawMessage `json:"resources"` // a list of skillDigest, or "dynamic"
}

type skillDigest struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

var dynamic = json.RawMessage(`"dynamic"`)

type listSkillsParams struct {
	mcp.ParamsBase
	Cursor string `json:"cursor,omitempty"`
}

type listSkillsResult struct {
	mcp.ResultBase
	mcp.Cacheable
	ResultType string        `json:"resultType"`
	Skills     []*skillEntry `json:"skills"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

type getSkillParams struct {
	mcp.ParamsBase
	URI string `json:"uri"`
}

type getSkillResult struct {
	mcp.ResultBase
	mcp.Cacheable
	ResultType string      `json:"resultType"`
	Skill      *skillEntry `json:"skill"`
}

type directoryParams struct {
	mcp.ParamsBase
	URI    string `json:"uri"`
	Cursor string `json:"cursor,omitempty"`
}

type directoryResult struct {
	mcp.ResultBase
	ResultType string          `json:"resultType"`
	Resources  []*mcp.Resource `json:"resources"`
	NextCursor string          `json:"nextCursor,omitempty"`
}

const complete = "complete"

func (c *caller) listSkills(ctx context.Context, _ *mcp.ServerSession, p *listSkillsParams) (*listSkillsResult, error) {
	cursor := ""
	if p != nil {
		cursor = p.Cursor
	}
	last, err := decodeCursor("skills", cursor)
	if err != nil {
		return nil, protocolError(err)
	}
	list, err := c.visible(ctx)
	if err != nil {
		return nil, protocolError(err)
	}
	page, next := pageOf(list, func(s skill.AgentSkill) string { return s.Name }, last, skillsPage)
	res := &listSkillsResult{Cacheable: uncached, ResultType: complete, Skills: make([]*skillEntry, 0, len(page))}
	for i := range page {
		e, err := c.entry(ctx, page[i].Name)
		if skill.CodeOf(err) == skill.NotFound {
			continue // it went away meanwhile
		}
		if err != nil {
			return nil, protocolError(err)
		}
		res.Skills = append(res.Skills, e)
	}
	res.NextCursor = encodeCursor("skills", next)
	return res, nil
}

func (c *caller) getSkill(ctx context.Context, _ *mcp.ServerSession, p *getSkillParams) (*getSkillResult, error) {
	uri := ""
	if p != nil {
		uri = p.URI
	}
	name, file, ok := parseURI(uri)
	none := &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: fmt.Sprintf("no skill at %s; use %sNAME/%s", skill.CleanText(uri, 200), scheme, skillFile),
	}
	if !ok || file != skillFile {
		return nil, none
	}
	e, err := c.entry(ctx, name)
	if skill.CodeOf(err) == skill.NotFound {
		return nil, none
	}
	if err != nil {
		return nil, protocolError(err)
	}
	return &getSkillResult{Cacheable: uncached, ResultType: complete, Skill: e}, nil
}

// entry describes one skill by the digests of all its files.
func (c *caller) entry(ctx context.Context, name string) (*skillEntry, error) {
	s, text, err := c.load(ctx, name)
	if err != nil {
		return nil, err
	}
	key := "mcp entry " + s.Name
	if v, ok := c.s.opt.Lists.Get(c.p.Tenant, key, s.Digest); ok { // which is over all files
		made, _ := v.(*skillEntry) // of this kind of key
		return made, nil
	}
	e := &skillEntry{URI: uriOf(s.Name, skillFile), Frontmatter: frontmatter(&s, text), Resources: dynamic}
	digests, err := c.digests(ctx, &s, text)
	if err != nil {
		return nil, err
	}
	if digests != nil {
		if e.Resources, err = json.Marshal(digests); err != nil {
			return nil, err
		}
		c.s.opt.Lists.Put(c.p.Tenant, key, s.Digest, e, len(e.Frontmatter)+len(e.Resources))
	}
	return e, nil
}

// digests reads the files of a skill; nil if its content is not files that stay as
// they are, or if they are too many.
func (c *caller) digests(ctx context.Context, s *skill.AgentSkill, text string) ([]skillDigest, error) {
	list := files(s)
	total := int64(len(text))
	for i := range list {
		if list[i].Size == 0 || list[i].Size > c.s.opt.ResourceLimit {
			return nil, nil
		}
		total += list[i].Size
	}
	if len(list)+1 > mostFiles || total > mostBytes {
		return nil, nil
	}
	all := []skillDigest{digestOf(uriOf(s.Name, skillFile), []byte(text))}
	for i := range list {
		got, err := c.read(ctx, s, list[i].Name)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil || int64(len(got.Data)) != list[i].Size:
			return nil, nil
		}
		all = append(all, digestOf(uriOf(s.Name, list[i].Name), got.Data))
	}
	return all, nil
}

func digestOf(uri string, b []byte) skillDigest {
	sum := sha256.Sum256(b)
	return skillDigest{URI: uri, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(b))}
}

// frontmatter is what the author wrote at the head of a SKILL.md, every field of it, as
// JSON; where there is none to read, as in a skill that is made by a program, what is
// known.
func frontmatter(s *skill.AgentSkill, text string) json.RawMessage {
	if written := frontOf(text); written != nil {
		var m map[string]any
		if json.Unmarshal(written, &m) == nil && m["name"] == s.Name {
			return written
		}
	}
	m := map[string]any{"name": s.Name, "description": s.Description}
	for k, v := range map[string]string{
		"license": s.License, "compatibility": s.Compatibility, "allowed-tools": strings.Join(s.AllowedTools, " "),
	} {
		if v != "" {
			m[k] = v
		}
	}
	if len(s.Metadata) > 0 {
		m["metadata"] = s.Metadata
	}
	b, _ := json.Marshal(m) // plain data
	return b
}

// frontOf is the YAML between the first two lines of three hyphens, as JSON; nil where
// there is none.
func frontOf(text string) json.RawMessage {
	first, rest, ok := strings.Cut(strings.TrimPrefix(text, "\xef\xbb\xbf"), "\n")
	if !ok || !isFence(first) {
		return nil
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if isFence(line) {
			root, problems := safeyaml.Parse([]byte(rest[:at]))
			if len(problems) > 0 || root == nil {
				return nil
			}
			b, problems := safeyaml.JSON(root)
			if len(problems) > 0 {
				return nil
			}
			return b
		}
		at += len(line) + 1
	}
	return nil
}

func isFence(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }

// readDirectory lists what is directly in a folder of a skill.
func (c *caller) readDirectory(ctx context.Context, _ *mcp.ServerSession, p *directoryParams) (*directoryResult, error) {
	if p == nil {
		p = &directoryParams{}
	}
	last, err := decodeCursor("directory", p.Cursor)
	if err != nil {
		return nil, protocolError(err)
	}
	none := &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: skill.CleanText(p.URI, 200) + " is not a skill folder; use skill://NAME or skill://NAME/FOLDER without a trailing slash",
	}
	name, folder, ok := parseURI(p.URI)
	if !ok {
		return nil, none
	}
	s, _, err := c.load(ctx, name)
	if skill.CodeOf(err) == skill.NotFound {
		return nil, none
	}
	if err != nil {
		return nil, protocolError(err)
	}
	children := childrenOf(&s, folder)
	if len(children) == 0 {
		return nil, none
	}
	page, next := pageOf(children, func(r *mcp.Resource) string { return r.URI }, last, pageSize)
	return &directoryResult{ResultType: complete, Resources: page, NextCursor: encodeCursor("directory", next)}, nil
}

// childrenOf are the files and folders in one folder, in order of their URIs; none if
// it is not one.
func childrenOf(s *skill.AgentSkill, folder string) (all []*mcp.Resource) {
	if folder == "" {
		all = append(all, skillResource(s))
	} else {
		folder += "/"
	}
	folders := map[string]bool{}
	for _, f := range files(s) {
		rest, ok := strings.CutPrefix(f.Name, folder)
		if !ok {
			continue
		}
		sub, _, deeper := strings.Cut(rest, "/")
		if !deeper {
			all = append(all, fileResource(s.Name, &f))
		} else if !folders[sub] {
			folders[sub] = true
			all = append(all, &mcp.Resource{URI: uriOf(s.Name, folder+sub), Name: sub, MIMEType: directory})
		}
	}
	slices.SortFunc(all, func(a, b *mcp.Resource) int { return cmp.Compare(a.URI, b.URI) })
	return all
}
