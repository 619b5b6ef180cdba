package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"openskill/sdk/skill"
)

// PackageWish says which packages a version of an upload is to have. The zero value asks for those
// that it declares, else those that its scripts import.
type PackageWish struct {
	Packages []string `json:"packages,omitempty"` // as in python:requests>=2 or npm:chalk@^5
	Update   bool     `json:"update,omitempty"`   // resolve those that it has again, too
	Tenant   string   `json:"tenant,omitempty"`   // whose skill it is; "": the caller's own
	Digest   string   `json:"digest,omitempty"`   // that the version must have; "": any
	Reason   string   `json:"reason,omitempty"`   // for the record
}

// AddPackages gives a version packages; it needs the scope skills:admin. pip and npm of the host
// download them, which can take minutes.
func (c *Client) AddPackages(ctx context.Context, id skill.ID, version string, w *PackageWish) (*skill.PackagesResult, error) {
	path, err := versionPath(id, version)
	if err != nil {
		return nil, err
	}
	return get[skill.PackagesResult](ctx, c, http.MethodPost, path+"/packages", w)
}

// RemovePackages takes all packages of a version away. An empty tenant is the caller's own.
func (c *Client) RemovePackages(ctx context.Context, id skill.ID, version, tenant string) (*skill.PackagesResult, error) {
	path, err := versionPath(id, version)
	if err != nil {
		return nil, err
	}
	return get[skill.PackagesResult](ctx, c, http.MethodDelete, path+"/packages"+ofTenant(tenant), nil)
}

// Version gives a version of an upload with its admission report, made anew.
func (c *Client) Version(ctx context.Context, id skill.ID, version, tenant string) (*skill.UploadResult, error) {
	path, err := versionPath(id, version)
	if err != nil {
		return nil, err
	}
	return get[skill.UploadResult](ctx, c, http.MethodGet, path+ofTenant(tenant), nil)
}

// Bill gives the packages of a version as a bill of materials, CycloneDX in JSON.
func (c *Client) Bill(ctx context.Context, id skill.ID, version, tenant string) (json.RawMessage, error) {
	path, err := versionPath(id, version)
	if err != nil {
		return nil, err
	}
	bill, err := get[json.RawMessage](ctx, c, http.MethodGet, path+"/sbom"+ofTenant(tenant), nil)
	if err != nil {
		return nil, err
	}
	return *bill, nil
}

// SkillFile returns a file of a version of an uploaded skill, of at most 1 MiB. Only the skill's tenant and the operator
// can read it; tenant "" is the caller's own.
func (c *Client) SkillFile(ctx context.Context, id skill.ID, version, path, tenant string) ([]byte, error) {
	at, err := versionPath(id, version)
	if err != nil {
		return nil, err
	}
	q := url.Values{"path": {path}}
	if tenant != "" {
		q.Set("tenant", tenant)
	}
	res, err := c.send(ctx, http.MethodGet, at+"/file?"+q.Encode(), nil, "*/*")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return c.body(res)
}

func versionPath(id skill.ID, version string) (string, error) {
	if _, err := skill.ParseID(string(id)); err != nil {
		return "", err
	}
	part, err := segment("version", version)
	return "/skills/" + string(id) + "/versions/" + part, err
}

func ofTenant(tenant string) string {
	if tenant == "" {
		return ""
	}
	return "?tenant=" + url.QueryEscape(tenant)
}
