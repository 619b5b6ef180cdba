package client

import (
	"bytes"
	"context"
	"errors"
	"mime/multipart"
	"net/http"

	"openskill/sdk/skill"
)

// Upload is a version of a skill that is sent: an archive, or a module with its manifest.
type Upload struct {
	Archive  []byte // zip or tar.gz, the skill's files at its root or in one folder
	Module   []byte // a WebAssembly module,
	Manifest []byte // and its skill.yaml
	DryRun   bool   // it is checked, and not kept
	Packages bool   // those that it needs are added; it needs the scope skills:admin
}

// Upload sends a version of a skill. It is disabled until it is enabled.
func (c *Client) Upload(ctx context.Context, u *Upload) (*skill.UploadResult, error) {
	parts := []struct {
		name    string
		content []byte
	}{{"archive", u.Archive}, {"module", u.Module}, {"manifest", u.Manifest}}
	if (u.Archive == nil) == (u.Module == nil) || (u.Module == nil) != (u.Manifest == nil) {
		return nil, errors.New("client: invalid upload: send an archive, or a module and its manifest")
	}
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, p := range parts {
		if p.content == nil {
			continue
		}
		w, err := form.CreateFormFile(p.name, p.name)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(p.content); err != nil {
			return nil, err
		}
	}
	if err := form.Close(); err != nil {
		return nil, err
	}
	path := "/skills"
	switch {
	case u.DryRun && u.Packages:
		return nil, errors.New("client: invalid upload: a dry run stores nothing, and so adds no packages")
	case u.DryRun:
		path += "?dry_run=true"
	case u.Packages:
		path += "?packages=true"
	}
	return get[skill.UploadResult](ctx, c, http.MethodPost, path, raw{form.FormDataContentType(), b.Bytes()})
}

// Pull has the host get a version of a skill out of a registry, HOST/REPOSITORY:VERSION,
// where its operator allows that. enable has it called at once.
func (c *Client) Pull(ctx context.Context, reference string, enable bool) (*skill.UploadResult, error) {
	body := struct {
		Reference string `json:"reference"`
		Enable    bool   `json:"enable,omitempty"`
	}{reference, enable}
	return get[skill.UploadResult](ctx, c, http.MethodPost, "/skills", body)
}

// Enable lets a skill be called: this version of it, or the newest one that never was
// enabled for "".
func (c *Client) Enable(ctx context.Context, id skill.ID, version string) (*skill.VersionState, error) {
	return c.decide(ctx, id, "enable", version)
}

// Disable keeps a skill from being called.
func (c *Client) Disable(ctx context.Context, id skill.ID, version string) (*skill.VersionState, error) {
	return c.decide(ctx, id, "disable", version)
}

func (c *Client) decide(ctx context.Context, id skill.ID, verb, version string) (*skill.VersionState, error) {
	if _, err := skill.ParseID(string(id)); err != nil {
		return nil, err
	}
	var body any
	if version != "" {
		body = map[string]string{"version": version}
	}
	return get[skill.VersionState](ctx, c, http.MethodPost, "/skills/"+string(id)+":"+verb, body)
}
