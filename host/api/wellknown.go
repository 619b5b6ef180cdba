package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"openskill/sdk/skill"
)

// SkillArchive returns the files of an Agent Skill as a zip. The same files give the same bytes. It is safe for
// concurrent use; its errors are *skill.Error.
type SkillArchive func(ctx context.Context, p skill.Principal, name string) ([]byte, error)

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

func (a *archiveDigests) of(s *skill.AgentSkill, archive func() ([]byte, error)) (string, error) {
	key := s.Name + " " + s.Digest
	a.mu.Lock()
	digest := a.made[key]
	a.mu.Unlock()
	if digest != "" {
		return digest, nil
	}
	b, err := archive()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	digest = "sha256:" + hex.EncodeToString(sum[:])
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.made) >= maxDigests || a.made == nil {
		a.made = map[string]string{}
	}
	a.made[key] = digest
	return digest, nil
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
		digest, err := s.archives.of(a, func() ([]byte, error) { return s.opt.SkillArchive(ctx, p, a.Name) })
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil: // it has links, is too large, or was removed: it cannot be downloaded
			continue
		}
		list = append(list, discovered{a.Name, "archive", a.Description, pathDiscovery + a.Name + "/skill.zip", digest})
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
	b, err := s.opt.SkillArchive(c.UserContext(), principalOf(c.Context()), name)
	if err != nil {
		return err
	}
	ctx := c.Context()
	ctx.Response.Header.Set("Content-Disposition", "attachment")
	ctx.SetContentType("application/zip")
	return s.setBody(ctx, b)
}
