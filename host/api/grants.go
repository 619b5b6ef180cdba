package api

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"openskill/host/dispatch/allow"
	"openskill/host/internal/gate"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// Grants is what scripts of Agent Skills are allowed. It authorizes; its errors are *skill.Error.
type Grants interface {
	// Review says what the scripts of a skill ask for, beside what they are allowed.
	Review(ctx context.Context, p skill.Principal, name string) (*allow.Review, error)
	// Allow makes a grant, and gives the review as it is with it.
	Allow(ctx context.Context, p skill.Principal, name string, w allow.Wish) (*allow.Review, error)
	// Digests says which files are allowed something.
	Digests(ctx context.Context, p skill.Principal) (allow.Digests, error)
	// Revoke removes a grant.
	Revoke(ctx context.Context, p skill.Principal, name string) error
}

// getGrant answers GET /agent-skills/{name}/grant.
func (s *Server) getGrant(c *fiber.Ctx) error {
	name, leave, err := s.reviewing(c)
	if err != nil {
		return err
	}
	defer leave()
	r, err := s.opt.Grants.Review(c.UserContext(), principalOf(c.Context()), name)
	return s.json(c, r, err)
}

// reviewing reads the name of a skill whose scripts are to be read. That costs what admission does,
// so it waits in the same line.
func (s *Server) reviewing(c *fiber.Ctx) (name string, leave func(), err error) {
	name = strings.Clone(c.Params("name"))
	if _, err := s.agentSkills(name); err != nil {
		return "", nil, err
	}
	if leave, err = s.admitting.Enter(c.UserContext(), principalOf(c.Context()).Tenant); err != nil {
		return "", nil, gate.Refusal(err, "api.grants", "too many skills are being checked")
	}
	return name, leave, nil
}

// allowScripts answers POST /agent-skills/{name}:allow. The digest says what the caller reviewed.
func (s *Server) allowScripts(c *fiber.Ctx) error {
	var w allow.Wish
	err := readMembers(c.Context().Request.Body(), "", []member{
		{"digest", text(&w.Digest, maxDigest)},
		{"http", texts(&w.HTTP)},
		{"env", variables(&w.Env)},
	})
	if err != nil {
		return err
	}
	if w.Digest == "" {
		return invalidField("digest", "is missing: send the digest that GET /agent-skills/{name}/grant shows")
	}
	name, leave, err := s.reviewing(c)
	if err != nil {
		return err
	}
	defer leave()
	r, err := s.opt.Grants.Allow(c.UserContext(), principalOf(c.Context()), name, w)
	return s.json(c, r, err)
}

// revokeScripts answers POST /agent-skills/{name}:revoke. The skill itself may be gone.
func (s *Server) revokeScripts(c *fiber.Ctx) error {
	if err := noBody(c); err != nil {
		return err
	}
	name := strings.Clone(c.Params("name"))
	err := s.opt.Grants.Revoke(c.UserContext(), principalOf(c.Context()), name)
	return s.json(c, struct {
		Skill string      `json:"skill"`
		State allow.State `json:"state"`
	}{name, allow.Nothing}, err)
}

// mostListed is how many elements a list of a grant may have.
const mostListed = 256

// each reads a list.
func each(field string, value []byte, read func(field string, value []byte) error) error {
	var list []json.RawMessage
	if value[0] != '[' || json.Unmarshal(value, &list) != nil {
		return invalidField(field, "must be a list")
	}
	if len(list) > mostListed {
		return invalidField(field, "must have at most "+strconv.Itoa(mostListed)+" elements")
	}
	for i, v := range list {
		if err := read(field+"["+strconv.Itoa(i)+"]", v); err != nil {
			return err
		}
	}
	return nil
}

// texts reads a list of strings.
func texts(to *[]string) func(string, []byte) error {
	return func(field string, value []byte) error {
		return each(field, value, func(field string, value []byte) error {
			var s string
			err := text(&s, 1024)(field, value)
			*to = append(*to, s)
			return err
		})
	}
}

// variables reads a list of variables. One without a value has the value that it was allowed with
// before. No error repeats a value.
func variables(to *[]allow.Variable) func(string, []byte) error {
	return func(field string, value []byte) error {
		return each(field, value, func(field string, value []byte) error {
			if value[0] != '{' {
				return invalidField(field, "must be an object")
			}
			var v allow.Variable
			var given string
			err := strictjson.Object(value, memberOf([]member{
				{"name", text(&v.Name, 128)},
				{"value", func(field string, value []byte) error {
					v.Value = &given
					return text(&given, 0)(field, value)
				}},
				{"for", texts(&v.For)},
			}, field+"."))
			*to = append(*to, v)
			return syntaxError(err)
		})
	}
}

var errNoGrants = &skill.Error{Op: "api.grants", Code: skill.NotFound, Message: "this host has no Agent Skills"}
