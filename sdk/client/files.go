package client

import (
	"context"
	"net/http"
	"net/url"

	"openskill/sdk/skill"
)

// UploadFile uploads a file. Calls refer to it by its ID in a [skill.FileRef]. name may be "".
func (c *Client) UploadFile(ctx context.Context, name string, content []byte) (*skill.FileInfo, error) {
	path := "/files"
	if name != "" {
		path += "?name=" + url.QueryEscape(name)
	}
	return get[skill.FileInfo](ctx, c, http.MethodPost, path, raw{"application/octet-stream", content})
}

// Artifact returns an artifact of an execution by its name in the result's Meta.
func (c *Client) Artifact(ctx context.Context, executionID, name string) ([]byte, error) {
	id, err := segment("execution id", executionID)
	if err != nil {
		return nil, err
	}
	res, err := c.send(ctx, http.MethodGet, "/executions/"+id+"/artifacts/"+url.PathEscape(name), nil, "application/octet-stream")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return c.body(res)
}

// Code is a program for [Client.RunCode].
type Code struct {
	Language string          `json:"language"` // python, javascript, typescript or shell
	Code     string          `json:"code"`
	Files    []skill.FileRef `json:"files,omitempty"` // initial files of the working folder
	// Workspace is the id of a working folder that calls share; "": none. Changes are saved if the program
	// succeeds, or if Commit is "always".
	Workspace string `json:"workspace,omitempty"`
	// Session is the id of a session, whose variables the code finds; "new" creates one; "": none. Python only.
	Session string `json:"session,omitempty"`
	// AgentSkills are the names of Agent Skills whose files the code sees in /mnt/skills/NAME.
	AgentSkills []string `json:"agent_skills,omitempty"`
	// Skills are the ids of the skills that the code may call; nil: all of the caller's.
	Skills []string `json:"skills,omitzero"`
	// Packages are the names of packages that the code needs; NOT_FOUND names one that the host does not have.
	Packages []string `json:"packages,omitempty"`
	Commit   string   `json:"commit,omitempty"`
	// Busy is what happens if another call uses the workspace: "wait" (the default), or "conflict" for an error.
	Busy   string           `json:"busy,omitempty"`
	Limits skill.LimitsJSON `json:"limits,omitzero"` // in place of the host's defaults, up to its maximum
}

// RunCode runs a program in a fresh sandbox and returns its result, as Invoke does. It requires the scope
// skills:invoke:run_code.
func (c *Client) RunCode(ctx context.Context, code Code) (*skill.Result, error) {
	return c.result(ctx, "/code:run", code)
}

// Workspace returns a workspace of the caller with the ids of its files.
func (c *Client) Workspace(ctx context.Context, id string) (*skill.Workspace, error) {
	id, err := segment("workspace", id)
	if err != nil {
		return nil, err
	}
	return get[skill.Workspace](ctx, c, http.MethodGet, "/workspaces/"+id, nil)
}
