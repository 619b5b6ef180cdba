package console

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"openskill/sdk/skill"
)

// found is an admission report as pages show it.
type found struct {
	Report *report
	Raw    string // the report as it is

	At templ.SafeURL // where files are shown; "": nowhere
	Of string        // the tenant that was asked for
}

// report is what pages show of an admission report.
type report struct {
	Verdict string `json:"verdict"`
	ID      string `json:"id"`
	Version string `json:"version"`
	Files   []struct {
		Path string `json:"path"`
		Size int64  `json:"size"`
	} `json:"files"`
	Asks    *asks `json:"asks"`
	Gets    *asks `json:"gets"`
	Refused []struct {
		File    string `json:"file"`
		Line    int    `json:"line"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"refused"`
	Warnings []string `json:"warnings"`
	Module   *struct {
		Size     int64      `json:"size"`
		Features []string   `json:"features"`
		Imports  []imported `json:"imports"`
	} `json:"module"`
	Preflight *struct {
		Needs struct {
			Packages []needed `json:"packages"`
		} `json:"needs"`
	} `json:"preflight"`
	Packages *struct {
		Packages []given `json:"packages"`
	} `json:"packages"`
}

type asks struct {
	Permissions json.RawMessage  `json:"permissions"`
	Limits      skill.LimitsJSON `json:"limits"`
	Requires    []string         `json:"requires"`
}

type imported struct {
	Module string `json:"module"`
	Name   string `json:"name"`
}

func (d *found) read(raw json.RawMessage) {
	d.Raw = pretty(raw)
	var r report
	if len(raw) > 0 && json.Unmarshal(raw, &r) == nil {
		d.Report = &r
	}
}

// fromOne is what is imported from one module.
type fromOne struct{ Module, Names string }

// byModule puts imports of the same module into one line, in the order of the first.
func byModule(all []imported) []fromOne {
	var list []fromOne
	names := map[string][]string{}
	for _, in := range all {
		if names[in.Module] == nil {
			list = append(list, fromOne{Module: in.Module})
		}
		if !slices.Contains(names[in.Module], in.Name) {
			names[in.Module] = append(names[in.Module], in.Name)
		}
	}
	for i := range list {
		list[i].Names = strings.Join(names[list[i].Module], ", ")
	}
	return list
}

// versionData is one version of a skill that was uploaded.
type versionData struct {
	skillData
	found
	Problem *apiError // why there is no report
}

// version shows what admission finds in a version. The host makes the report again, so
// that there is one of versions of any age.
func (v *view) version() error {
	if err := v.allowed("skills"); err != nil {
		return err
	}
	id, version, tenant := v.r.PathValue("id"), v.r.PathValue("version"), v.r.URL.Query().Get("tenant")
	s, err := v.loadSkill(id, version, tenant)
	if err != nil {
		return err
	}
	d := &versionData{skillData: *s}
	var made skill.UploadResult
	if err := v.ask("GET", pathOf("skills", id, "versions", version), values("tenant", tenant), nil, &made); err != nil {
		if !errors.As(err, &d.Problem) {
			return err
		}
	} else {
		d.read(made.Report)
		d.At, d.Of = link("skills", id, "versions", version, "file"), tenant
	}
	status := http.StatusOK
	if d.Problem != nil {
		status = d.Problem.Status
	}
	return v.show(status, versionView(v.frame("skills", oneLine(id+" "+version, 120)), d))
}

// fileData is a file of a version. Characters that cannot be seen are made visible.
type fileData struct{ ID, Version, Tenant, Path, Text string }

func (v *view) skillFile() error {
	if err := v.allowed("skills"); err != nil {
		return err
	}
	d := &fileData{ID: v.r.PathValue("id"), Version: v.r.PathValue("version"), Tenant: v.r.URL.Query().Get("tenant"), Path: v.r.URL.Query().Get("path")}
	resp, err := v.call("GET", pathOf("skills", d.ID, "versions", d.Version, "file"), values("path", d.Path, "tenant", d.Tenant), nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return v.read(resp, nil)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostFile+1))
	if err != nil {
		return err
	}
	d.Text = visibleHead(string(b), max(int(resp.ContentLength), len(b)), mostFile)
	return v.show(http.StatusOK, fileView(v.frame("skills", oneLine(d.Path, 120)), d))
}

// mostFile is how much of a file is shown, in bytes.
const mostFile = 256 << 10
