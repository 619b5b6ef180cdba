package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"openskill/sdk/skill"
)

// SkillArchive writes the files of an Agent Skill as a zip of at most 16 MiB, and returns the digest of the skill. The
// same files produce the same bytes. It is safe for concurrent use; its errors are *skill.Error.
type SkillArchive func(ctx context.Context, p skill.Principal, name string, w io.Writer) (digest string, err error)

// The Agent Skills Discovery RFC, version 0.2.0.
const (
	discoverySchema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
	pathDiscovery   = "/.well-known/agent-skills/"
)

var errNoDiscovery = &skill.Error{Op: "api.discovery", Code: skill.NotFound, Message: "Agent Skills are not offered for download on this host"}

// discovered is one entry of the index.
type discovered struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	URL         string `json:"url"`
	Digest      string `json:"digest"` // of the archive
}

// maxDigests bounds the digests of archives that are remembered.
const maxDigests = 10_000

// archiveDigests remembers the digests of archives by the digests of skills. The zero value is empty.
type archiveDigests struct {
	mu   sync.Mutex
	made map[string]string
}

// of returns the digest of an archive, or "" if the skill cannot be downloaded.
func (a *archiveDigests) of(s *skill.AgentSkill, archive func(w io.Writer) (string, error)) string {
	key := s.Name + " " + s.Digest
	a.mu.Lock()
	digest, known := a.made[key]
	a.mu.Unlock()
	if known {
		return digest
	}
	h := sha256.New()
	of, err := archive(h)
	switch {
	case err == nil:
		digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	case skill.CodeOf(err) != skill.PayloadTooLarge: // it may pass
		return ""
	}
	if err == nil && of != s.Digest { // the skill has changed since it was listed
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.made) >= maxDigests || a.made == nil {
		a.made = map[string]string{}
	}
	a.made[key] = digest
	return digest
}

// discovery answers GET /.well-known/agent-skills/index.json.
func (s *Server) discovery(c *fiber.Ctx) error {
	ctx, p := c.UserContext(), principalOf(c.Context())
	if s.opt.AgentSkills == nil {
		return errNoDiscovery
	}
	all, err := s.opt.AgentSkills.List(ctx, p)
	if err != nil {
		return err
	}
	list := []discovered{}
	for i := range all {
		a := &all[i]
		digest := s.archives.of(a, func(w io.Writer) (string, error) { return s.opt.SkillArchive(ctx, p, a.Name, w) })
		if digest != "" {
			list = append(list, discovered{a.Name, "archive", a.Description, pathDiscovery + a.Name + "/skill.zip", digest})
		}
	}
	return s.json(c, struct {
		Schema string       `json:"$schema"`
		Skills []discovered `json:"skills"`
	}{discoverySchema, list}, nil)
}

// skillArchive answers GET /.well-known/agent-skills/{name}/skill.zip.
func (s *Server) skillArchive(c *fiber.Ctx) error {
	name := strings.Clone(c.Params("name"))
	if _, err := s.agentSkills(name); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := s.opt.SkillArchive(c.UserContext(), principalOf(c.Context()), name, &b); err != nil {
		return err
	}
	ctx := c.Context()
	ctx.Response.Header.Set("Content-Disposition", "attachment")
	ctx.SetContentType("application/zip")
	return s.setBody(ctx, b.Bytes())
}
