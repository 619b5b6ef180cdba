package console

import (
	"net/http"
	"slices"

	"openskill/sdk/skill"
)

// workspacesData is a page of workspaces.
type workspacesData struct {
	List []skill.Workspace
	Next string
}

func (v *view) workspaces() error {
	if err := v.allowed("workspaces"); err != nil {
		return err
	}
	var page list[skill.Workspace]
	if err := v.ask("GET", "/workspaces", values("limit", "50", "cursor", v.r.URL.Query().Get("cursor")), nil, &page); err != nil {
		return err
	}
	return v.show(http.StatusOK, workspacesPage(v.frame("workspaces", "Workspaces"), &workspacesData{page.Data, page.next()}))
}

func (v *view) workspace() error {
	w, err := v.getWorkspace()
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, workspacePage(v.frame("workspaces", "Workspace"), w))
}

func (v *view) getWorkspace() (*skill.Workspace, error) {
	if err := v.allowed("workspaces"); err != nil {
		return nil, err
	}
	w := &skill.Workspace{}
	return w, v.ask("GET", pathOf("workspaces", v.r.PathValue("id")), nil, nil, w)
}

// workspaceFile hands a file of a workspace on to be saved.
func (v *view) workspaceFile() error {
	w, err := v.getWorkspace()
	if err != nil {
		return err
	}
	name := v.r.PathValue("name")
	i := slices.IndexFunc(w.Files, func(f skill.WorkspaceFile) bool { return f.Name == name })
	if i < 0 {
		return v.fail(http.StatusNotFound, "The workspace has no such file any more.")
	}
	return v.save(name, pathOf("files", w.Files[i].ID, "content"))
}

func (v *view) deleteWorkspace() error {
	id := v.r.PathValue("id")
	if err := v.ask("DELETE", pathOf("workspaces", id), nil, nil, nil); err != nil {
		v.leave(false, messageOf(err))
	} else {
		v.leave(true, "The workspace "+id+" is deleted.")
	}
	return v.redirect("/workspaces")
}
