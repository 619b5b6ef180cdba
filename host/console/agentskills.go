package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"openskill/sdk/skill"
)

// agentSkillData is one Agent Skill.
type agentSkillData struct {
	skill.AgentSkill
	Content string `json:"content"`

	HTML   string      `json:"-"`
	Call   bool        `json:"-"`
	Grants bool        `json:"-"` // the caller decides what scripts may do
	Script string      `json:"-"` // that was run
	Args   string      `json:"-"`
	Input  string      `json:"-"`
	Wrong  string      `json:"-"` // with what was given
	Result *resultData `json:"-"`
}

func (v *view) agentSkills() error {
	if err := v.allowed("agent-skills"); err != nil {
		return err
	}
	var page list[skill.AgentSkill]
	if err := v.ask("GET", "/agent-skills", values("limit", "50", "cursor", v.r.URL.Query().Get("cursor")), nil, &page); err != nil {
		return err
	}
	return v.show(http.StatusOK, agentSkillsPage(v.frame("agent-skills", "Agent Skills"), page.Data, page.next()))
}

func (v *view) loadAgentSkill() (*agentSkillData, error) {
	d := &agentSkillData{}
	if err := v.ask("GET", pathOf("agent-skills", v.r.PathValue("name")), nil, nil, d); err != nil {
		return nil, err
	}
	leave, err := v.turn(int64(len(d.Content)))
	if err != nil {
		return nil, err
	}
	defer leave()
	d.HTML = markdown(withoutFrontmatter(d.Content))
	d.Call, d.Grants = v.p.MayInvoke(skill.ID(d.Name)), v.may("grants")
	return d, nil
}

func (v *view) agentSkill() error {
	if err := v.allowed("agent-skills"); err != nil {
		return err
	}
	d, err := v.loadAgentSkill()
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, agentSkillPage(v.frame("agent-skills", d.Name), d))
}

// runScript runs a script with arguments: a line each, or JSON.
func (v *view) runScript() error {
	d, err := v.loadAgentSkill()
	if err != nil {
		return err
	}
	f := v.r.PostForm
	d.Script, d.Args, d.Input = f.Get("script"), f.Get("args"), f.Get("input")
	body := map[string]any{}
	status := http.StatusOK
	switch text := strings.TrimSpace(d.Args); {
	case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
		if !json.Valid([]byte(text)) {
			d.Wrong = "The arguments look like JSON but are not valid JSON."
		}
		body["args"] = json.RawMessage(text)
	case text != "":
		body["args"] = strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	}
	if d.Input != "" {
		body["input"] = strings.ReplaceAll(d.Input, "\r\n", "\n")
	}
	if d.Wrong != "" {
		status = http.StatusUnprocessableEntity
	} else {
		path := "/agent-skills/" + url.PathEscape(d.Name) + "/scripts/" + url.PathEscape(d.Script) + ":run"
		if d.Result, err = v.run(path, body); err != nil {
			return err
		}
	}
	return v.show(status, agentSkillPage(v.frame("agent-skills", d.Name), d))
}
