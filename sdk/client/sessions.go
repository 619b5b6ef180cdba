package client

import (
	"context"
	"net/http"

	"openskill/sdk/skill"
)

// CreateCodeSession creates a session for code in a language: "python". packages are those that the code needs. Use its ID
// as [Code.Session]. It requires the scope skills:invoke:run_code.
func (c *Client) CreateCodeSession(ctx context.Context, language string, packages ...string) (*skill.Session, error) {
	return get[skill.Session](ctx, c, http.MethodPost, "/sessions", map[string]any{"language": language, "packages": append([]string{}, packages...)})
}

// CodeSession returns a session of the caller.
func (c *Client) CodeSession(ctx context.Context, id string) (*skill.Session, error) {
	return c.codeSession(ctx, http.MethodGet, id, "")
}

// ForkCodeSession creates a session with the variables and files of another one.
func (c *Client) ForkCodeSession(ctx context.Context, id string) (*skill.Session, error) {
	return c.codeSession(ctx, http.MethodPost, id, ":fork")
}

// FreezeCodeSession writes a session to the host's database, from which its next call takes it, on any host.
func (c *Client) FreezeCodeSession(ctx context.Context, id string) (*skill.Session, error) {
	return c.codeSession(ctx, http.MethodPost, id, ":freeze")
}

func (c *Client) codeSession(ctx context.Context, method, id, action string) (*skill.Session, error) {
	id, err := segment("session", id)
	if err != nil {
		return nil, err
	}
	return get[skill.Session](ctx, c, method, "/sessions/"+id+action, nil)
}

// DeleteCodeSession deletes a session and the workspace of its own.
func (c *Client) DeleteCodeSession(ctx context.Context, id string) error {
	id, err := segment("session", id)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodDelete, "/sessions/"+id, nil, nil)
}
