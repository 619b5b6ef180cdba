package tools

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// Form is which tools a model gets.
type Form string

// The forms. With [FormCode], a model finds skills with search_skills and calls them in run_code, so that the list of
// tools does not grow with the number of skills.
const (
	FormAll  Form = "all"  // every skill
	FormCode Form = "code" // search_skills, run_code and the tools of Agent Skills
	FormBoth Form = "both" // every skill, and search_skills
)

// ParseForm returns the form of that name. "" is the given default.
func ParseForm(name string, or Form) (Form, error) {
	switch f := Form(name); f {
	case "":
		return or, nil
	case FormAll, FormCode, FormBoth:
		return f, nil
	}
	return "", invalid("tools", "must be all, code or both")
}

// Finder searches the skills and Agent Skills of a caller for the words of a query, the best match first. The
// error is a *skill.Error.
type Finder func(ctx context.Context, p skill.Principal, query string, limit int) ([]skill.Found, error)

// The bounds of a search.
const (
	MaxQuery     = 500 // bytes of a query
	MaxFound     = 20
	DefaultFound = 5
)

// SearchTool is the tool search_skills.
var SearchTool = skill.Tool{
	Name: SearchSkills, Title: "Search skills", ReadOnly: true,
	Description: "Finds skills by words; the best match comes first. Call a found skill in run_code: in Python " +
		"`from skills import NAME; NAME(field=value)`, in JavaScript `await skills.NAME({field: value})`. " +
		"Load a result of type agent_skill with load_skill.",
	InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["query"],"properties":{` +
		`"query":{"type":"string","maxLength":` + strconv.Itoa(MaxQuery) + `,"description":"Words of the task, such as: convert csv to xlsx."},` +
		`"limit":{"type":"integer","minimum":1,"maximum":` + strconv.Itoa(MaxFound) + `,"default":` + strconv.Itoa(DefaultFound) + `}}}`),
}

// errNoCode refuses the form [FormCode] to callers who cannot run code.
var errNoCode = &skill.Error{
	Op: "tools.NoCode", Code: skill.Forbidden, Subject: skill.RunCode,
	Message: "tools=code needs the skill run_code and the scope skills:invoke:run_code; use tools=both, or ask the operator",
}

// NoCode returns errNoCode, unless p may call run_code and d, its descriptor, is enabled.
func NoCode(p skill.Principal, d *skill.Descriptor) error {
	if d == nil || !d.Enabled || !p.MayInvoke(skill.RunCode) {
		return errNoCode
	}
	return nil
}

// Search answers a call of search_skills. It never returns nil.
func Search(ctx context.Context, find Finder, p skill.Principal, args json.RawMessage, trace skill.TraceID) *skill.Result {
	began := time.Now()
	query, limit, err := searchArguments(args)
	var found []skill.Found
	if err == nil {
		found, err = find(ctx, p, query, limit)
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(map[string]any{"skills": found})
	}
	meta := skill.Meta{LatencyMS: time.Since(began).Milliseconds()}
	if err != nil {
		return skill.Failure(SearchSkills, trace, meta, err)
	}
	return &skill.Result{Success: true, SkillID: SearchSkills, TraceID: trace, Data: data, Meta: meta}
}

func searchArguments(args json.RawMessage) (query string, limit int, err error) {
	limit = DefaultFound
	err = strictjson.Object(args, func(key, value []byte) error {
		switch field := skill.CleanText(string(key), 64); field {
		case "query":
			if json.Unmarshal(value, &query) != nil {
				return invalid(field, "must be a string")
			}
		case "limit":
			if json.Unmarshal(value, &limit) != nil {
				return invalid(field, "must be a whole number")
			}
		default:
			return invalid(field, "is unknown; use query and limit")
		}
		return nil
	})
	switch {
	case err != nil && skill.CodeOf(err) == skill.Internal: // of strictjson
		return "", 0, invalid("arguments", "must be a JSON object with query: "+err.Error())
	case err != nil:
		return "", 0, err
	}
	return query, limit, CheckSearch(query, limit)
}

// CheckSearch validates the query and the limit of a search.
func CheckSearch(query string, limit int) error {
	switch {
	case query == "":
		return invalid("query", "is missing; send words to search for")
	case len(query) > MaxQuery:
		return invalid("query", "is longer than "+strconv.Itoa(MaxQuery)+" bytes")
	case limit < 1 || limit > MaxFound:
		return invalid("limit", "must be 1 to "+strconv.Itoa(MaxFound))
	}
	return nil
}

func invalid(field, problem string) error {
	return &skill.Error{
		Op: "tools.Search", Code: skill.InvalidArgument, Subject: field, Message: field + " " + problem,
		Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": problem}}},
	}
}
