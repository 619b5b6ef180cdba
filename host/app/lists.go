package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"

	"openskill/host/agent/tools"
	"openskill/host/app/config"
	"openskill/host/catalogue"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// revision compares equal as long as what the callers of a tenant find stays as it is: the
// operator's skills, the uploads of the tenant, those that are approved for all, and the
// settings that say what they are granted.
type revision struct {
	own      *manifest.Registry
	uploads  catalogue.Revision
	settings *config.Settings
}

// mostKept is the size in bytes of the cache of lists, which tenants share.
const mostKept = 64 << 20

// toolList is what models may call, in the words of a vendor: the tools for Agent Skills, and
// after them those of skills, in the order of their ids.
type toolList struct {
	all   json.RawMessage
	first int      // where the tools of skills begin in all
	ids   []string // of the skills
	ends  []int    // where the tool of each ends in all
}

// page is the part of a list of limit skills after cursor; the first page has the tools for
// Agent Skills besides. next is the cursor of the page after it, "" if there is none.
func (l *toolList) page(cursor string, limit int) (part json.RawMessage, next string, err error) {
	from, begin := 0, 1
	if cursor != "" {
		id, err := skill.ParseID(cursor)
		if err != nil {
			return nil, "", &skill.Error{Op: "host.Tools", Code: skill.InvalidArgument, Subject: "cursor", Message: "cursor must be the next value of the previous page"}
		}
		var found bool
		if from, found = slices.BinarySearch(l.ids, string(id)); found {
			from++
		}
		begin = l.end(from)
	}
	to := from + min(limit, len(l.ids)-from)
	if from == 0 && begin == 1 && to == len(l.ids) {
		return l.all, "", nil
	}
	if to < len(l.ids) {
		next = l.ids[to-1]
	}
	part = bytes.TrimPrefix(l.all[begin:l.end(to)], []byte(","))
	return slices.Concat([]byte("["), part, []byte("]\n")), next, nil
}

// end is where the tools of the first n skills end.
func (l *toolList) end(n int) int {
	if n == 0 {
		return l.first
	}
	return l.ends[n-1]
}

// Tools gives a page of what models may call, in the words of a vendor: every skill of the
// caller's, and the tools for Agent Skills where there are any. It is JSON, which is not to be
// changed. limit is of skills.
func (h *Host) Tools(ctx context.Context, p skill.Principal, format, cursor string, limit int) (list json.RawMessage, next string, err error) {
	view := h.Catalogue()
	at := view.revision(p.Tenant) // before anything is read
	own, err := h.agents.Tools(ctx, p)
	if err != nil {
		return nil, "", err
	}
	b, err := json.Marshal(own)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(b)
	key := "tools " + format + " " + string(sum[:]) + strconv.FormatBool(p.MayInvoke(skill.RunCode))
	if v, ok := h.lists.Get(p.Tenant, key, at); ok {
		kept, _ := v.(*toolList) // of this kind of key
		return kept.page(cursor, limit)
	}
	all, err := h.tools(ctx, p, own)
	if err != nil {
		return nil, "", err
	}
	made, err := written(ctx, format, all, len(own))
	if err != nil {
		return nil, "", err
	}
	h.lists.Put(p.Tenant, key, at, made, len(made.all)+len(made.ids)*mostID)
	return made.page(cursor, limit)
}

// mostID is about what the id of a skill and where its tool ends take in memory.
const mostID = 96

// written is a list of tools in a format, of which the first ones are for Agent Skills. It
// ends with ctx.
func written(ctx context.Context, format string, list []skill.Tool, own int) (*toolList, error) {
	out := bytes.NewBufferString("[")
	made := &toolList{first: 1}
	var one bytes.Buffer
	enc := json.NewEncoder(&one)
	enc.SetEscapeHTML(false)
	for i := range list {
		if ctx.Err() != nil {
			return nil, listLeft(ctx)
		}
		v, err := tools.Write(format, list[i:i+1])
		if err != nil {
			return nil, err
		}
		one.Reset()
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
		inner := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(one.Bytes()), []byte("[")), []byte("]"))
		if len(inner) > 0 && out.Len() > 1 { // a vendor may not take one
			out.WriteByte(',')
		}
		out.Write(inner)
		if i < own {
			made.first = out.Len()
			continue
		}
		made.ids, made.ends = append(made.ids, list[i].Name), append(made.ends, out.Len())
	}
	out.WriteString("]\n")
	made.all = out.Bytes()
	return made, nil
}

// tools joins the tools for Agent Skills and those of the skills that a caller finds.
func (h *Host) tools(ctx context.Context, p skill.Principal, own []skill.Tool) ([]skill.Tool, error) {
	skills, err := h.Catalogue().seen(p)
	if err != nil {
		return nil, err
	}
	made := []skill.Tool{}
	for i := range skills {
		if ctx.Err() != nil {
			return nil, listLeft(ctx)
		}
		if skills[i].Callable() {
			made = append(made, tools.Of(&skills[i]))
		}
	}
	all, taken := tools.Join(own, made)
	if len(taken) > 0 {
		h.log.Warn("tools with duplicate names are omitted", slog.Any("names", taken))
	}
	return all, nil
}

// revision is that of all that MCP lists for a caller.
func (h *Host) revision(ctx context.Context, p skill.Principal) any {
	agents, err := h.agents.Revision(ctx, p.Tenant)
	if err != nil {
		return nil // it is looked at, and whoever asks is told
	}
	return struct {
		skills revision
		agents any
	}{h.Catalogue().revision(p.Tenant), agents}
}

// listLeft is the error of a list whose caller does not wait for it any more.
func listLeft(ctx context.Context) error {
	return &skill.Error{Op: "host.list", Code: skill.Cancelled, Message: "the caller left", Err: context.Cause(ctx)}
}
