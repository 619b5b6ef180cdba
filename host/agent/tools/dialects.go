package tools

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// The formats of [Write].
const (
	FormatOpenAI    = "openai"
	FormatAnthropic = "anthropic"
	FormatMCP       = "mcp"
)

// Formats are the formats of [Write], the usual one first.
func Formats() []string { return []string{FormatOpenAI, FormatAnthropic, FormatMCP} }

// Write gives the list in a format, as a value for json.Marshal. The error is a
// *skill.Error: INVALID_ARGUMENT for a format that there is not, CONFLICT for two tools of
// one name, of which a model could not tell which it calls.
func Write(format string, list []skill.Tool) (any, error) {
	seen := map[string]bool{}
	for i := range list {
		name := list[i].Name
		if seen[name] {
			return nil, &skill.Error{
				Op: "tools.Write", Code: skill.Conflict, Subject: skill.CleanText(name, 64),
				Message: "two tools have the name " + skill.CleanText(name, 64),
			}
		}
		seen[name] = true
	}
	switch format {
	case FormatOpenAI:
		return OpenAI(list), nil
	case FormatAnthropic:
		return Anthropic(list), nil
	case FormatMCP:
		return MCP(list), nil
	}
	return nil, &skill.Error{
		Op: "tools.Write", Code: skill.InvalidArgument, Subject: "format",
		Message: fmt.Sprintf("the format %q is not known; accepted are %s", skill.CleanText(format, 40), strings.Join(Formats(), ", ")),
	}
}

// Join puts lists together. Of tools of one name the first is kept; the names of the
// others are given too.
func Join(lists ...[]skill.Tool) (all []skill.Tool, left []string) {
	seen := map[string]bool{}
	all = []skill.Tool{}
	for _, list := range lists {
		for _, t := range list {
			if seen[t.Name] {
				left = append(left, t.Name)
				continue
			}
			seen[t.Name] = true
			all = append(all, t)
		}
	}
	return all, left
}

// The forms of tools. Schemas are kept in their order.
type (
	openAITool struct {
		Type     string         `json:"type"`
		Function openAIFunction `json:"function"`
	}
	openAIFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	anthropicTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	mcpTool struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  *mcpHints       `json:"annotations,omitempty"`
	}
	mcpHints struct {
		Title    string `json:"title,omitempty"`
		ReadOnly bool   `json:"readOnlyHint"`
	}
)

// OpenAI writes tools as its Chat Completions take them, and those of others who follow
// it.
func OpenAI(list []skill.Tool) any {
	out := []openAITool{}
	for _, t := range list {
		out = append(out, openAITool{"function", openAIFunction{t.Name, description(&t), adapted(t.InputSchema, vendor{items: true})}})
	}
	return out
}

// Anthropic writes tools as its Messages take them.
func Anthropic(list []skill.Tool) any {
	out := []anthropicTool{}
	for _, t := range list {
		if s := adapted(t.InputSchema, vendor{names: anthropicNames}); len(unnamed(s, anthropicNames)) == 0 {
			out = append(out, anthropicTool{t.Name, description(&t), s})
		}
	}
	return out
}

// anthropicNames are the names of properties that it takes.
var anthropicNames = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// MCP writes tools as the answer to tools/list has them, with the schemas as they are.
func MCP(list []skill.Tool) any {
	out := []mcpTool{}
	for _, t := range list {
		m := mcpTool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: object(t.InputSchema), OutputSchema: t.OutputSchema}
		if t.ReadOnly || t.Title != "" {
			m.Annotations = &mcpHints{t.Title, t.ReadOnly}
		}
		out = append(out, m)
	}
	return out
}

func description(t *skill.Tool) string {
	if t.Description == "" {
		return t.Name
	}
	return skill.CleanText(t.Description, longestDescription)
}

func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}

// vendor is what one of them wants of a schema.
type vendor struct {
	items bool           // every array has items
	names *regexp.Regexp // of properties; nil: any
}

// adapted says a schema in a vendor's words.
func adapted(raw json.RawMessage, v vendor) json.RawMessage {
	o, err := ordered.DecodeObject(object(raw))
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	in := &inliner{root: o.Clone(), schemas: maxInlined, bytes: maxInlinedBytes}
	o = in.inline(o, nil)
	flatten(o)
	v.adapt(o, true)
	if o.Object("properties") == nil {
		o.Set("properties", &ordered.Object{})
	}
	o.First("type", "object")
	b, err := ordered.Encode(o)
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return b
}

// maxInlined is how many schemas one may grow to, when references are replaced, and
// maxInlinedBytes by how many bytes: each may stand for many.
const (
	maxInlined      = 2000
	maxInlinedBytes = 128 << 10
)

// inliner replaces references by what they refer to in root.
type inliner struct {
	root           *ordered.Object
	schemas, bytes int // that may still be made
}

// inline replaces the references in o. within are those around it.
func (in *inliner) inline(o *ordered.Object, within []string) *ordered.Object {
	if in.schemas--; in.schemas < 0 {
		return &ordered.Object{}
	}
	if ref := o.Text("$ref"); ref != "" {
		target := resolve(in.root, ref)
		rounds := 0
		for _, w := range within {
			if w == ref {
				rounds++
			}
		}
		if target == nil || rounds >= 2 || !in.room(target) {
			kept := &ordered.Object{}
			if d := o.Text("description"); d != "" {
				kept.Set("description", d)
			}
			return kept
		}
		made := in.inline(target.Clone(), append(slices.Clone(within), ref))
		for _, m := range o.Members { // what stands beside it holds too
			if m.Key != "$ref" && m.Key != "$defs" && m.Key != "definitions" {
				made.Set(m.Key, m.Value)
			}
		}
		return made
	}
	o.Delete("$defs")
	o.Delete("definitions")
	eachSchema(o, func(s *ordered.Object) *ordered.Object { return in.inline(s, within) })
	return o
}

// room takes the bytes of a copy; false: there are not so many left.
func (in *inliner) room(o *ordered.Object) bool {
	if in.bytes <= 0 {
		return false
	}
	b, err := ordered.Encode(o)
	in.bytes -= len(b)
	return err == nil && in.bytes >= 0
}

// resolve finds what a reference within the document refers to.
func resolve(root *ordered.Object, ref string) *ordered.Object {
	pointer, ok := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if !ok || err != nil {
		return nil
	}
	if pointer == "" {
		return root
	}
	var at any = root
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch node := at.(type) {
		case *ordered.Object:
			at = node.Get(token)
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			at = node[i]
		default:
			return nil
		}
	}
	o, _ := at.(*ordered.Object)
	return o
}

// flatten takes from the top of a schema what vendors refuse there.
func flatten(o *ordered.Object) {
	props := o.Object("properties")
	if props == nil {
		props = &ordered.Object{}
	}
	required := slices.Clone(o.List("required"))
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		var common []any // required by all of them
		for i, e := range o.List(key) {
			part, ok := e.(*ordered.Object)
			if !ok {
				continue
			}
			flatten(part)
			if more := part.Object("properties"); more != nil {
				for _, m := range more.Members {
					if !props.Has(m.Key) {
						props.Set(m.Key, m.Value)
					}
				}
			}
			needs := part.List("required")
			switch {
			case key == "allOf":
				required = append(required, needs...)
			case i == 0:
				common = slices.Clone(needs)
			default:
				common = slices.DeleteFunc(common, func(n any) bool { return !slices.Contains(needs, n) })
			}
		}
		required = append(required, common...)
	}
	for _, key := range []string{
		"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "dependentSchemas", "dependentRequired",
		"unevaluatedProperties", "minProperties", "maxProperties", "propertyNames",
	} {
		o.Delete(key)
	}
	var unique []any
	for _, r := range required {
		if name, ok := r.(string); ok && props.Has(name) && !slices.Contains(unique, r) {
			unique = append(unique, r)
		}
	}
	if len(props.Members) > 0 {
		o.Set("properties", props)
	}
	if o.Set("required", unique); len(unique) == 0 {
		o.Delete("required")
	}
}

// adapt changes a schema and those in it.
func (v vendor) adapt(o *ordered.Object, top bool) {
	eachSchema(o, func(s *ordered.Object) *ordered.Object {
		v.adapt(s, false)
		return s
	})
	if v.items && isArray(o) && o.Object("items") == nil {
		items := &ordered.Object{}
		if list := o.List("prefixItems"); len(list) == 1 {
			items, _ = list[0].(*ordered.Object)
		} else if len(list) > 1 {
			items.Set("anyOf", list)
		}
		if items == nil {
			items = &ordered.Object{}
		}
		o.Set("items", items)
	}
	if v.items {
		o.Delete("prefixItems")
	}
	props := o.Object("properties")
	if props == nil {
		return
	}
	for i, m := range props.Members {
		if m.Value == any(true) { // anything, in a form that not every vendor reads
			props.Members[i].Value = &ordered.Object{}
		}
	}
	if v.names == nil {
		return
	}
	required := o.List("required")
	props.Members = slices.DeleteFunc(slices.Clone(props.Members), func(m ordered.Member) bool {
		if v.names.MatchString(m.Key) || top && slices.Contains(required, any(m.Key)) { // those of the top make the tool useless
			return false
		}
		required = slices.DeleteFunc(slices.Clone(required), func(r any) bool { return r == any(m.Key) })
		return true
	})
	if required != nil {
		o.Set("required", required)
	}
}

func isArray(o *ordered.Object) bool {
	switch t := o.Get("type").(type) {
	case string:
		return t == "array"
	case []any:
		return slices.Contains(t, any("array"))
	}
	return false
}

// unnamed are the properties at the top whose names a vendor refuses, and that must be
// given.
func unnamed(raw json.RawMessage, names *regexp.Regexp) (list []string) {
	o, err := ordered.DecodeObject(raw)
	if err != nil || o.Object("properties") == nil {
		return nil
	}
	for _, m := range o.Object("properties").Members {
		if !names.MatchString(m.Key) {
			list = append(list, m.Key)
		}
	}
	return list
}

// Warnings tells in words for an operator what of the list models will not see in a
// format.
func Warnings(format string, list []skill.Tool) (warnings []string) {
	if format != FormatAnthropic {
		return nil
	}
	for _, t := range list {
		o, err := ordered.DecodeObject(object(t.InputSchema))
		if err != nil || o.Object("properties") == nil {
			continue
		}
		left := false
		for _, m := range o.Object("properties").Members {
			if anthropicNames.MatchString(m.Key) {
				continue
			}
			name := skill.CleanText(m.Key, 64)
			if slices.Contains(o.List("required"), any(m.Key)) {
				left = true
				warnings = append(warnings, fmt.Sprintf("%s is left out: it requires %q, a name that Anthropic refuses; accepted are 1 to 64 of A-Z a-z 0-9 _ . -", t.Name, name))
			} else if !left {
				warnings = append(warnings, fmt.Sprintf("%s: the property %q is left out, by a name that Anthropic refuses", t.Name, name))
			}
		}
	}
	return warnings
}
