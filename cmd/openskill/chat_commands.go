package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// chatCommand is something that a person asks of the chat and not of the model.
type chatCommand struct {
	name, args, about string
	run               func(c *chatting, ctx context.Context, args []string)
}

// chatCommands lists them, but for those that leave.
func chatCommands() []chatCommand {
	return []chatCommand{
		{"/skills", "", "list the skills", func(c *chatting, ctx context.Context, _ []string) { c.showSkills(ctx) }},
		{"/tools", "", "list the tools of the model", func(c *chatting, ctx context.Context, _ []string) { c.showTools(ctx) }},
		{"/new", "", "begin a new conversation", func(c *chatting, _ context.Context, _ []string) { c.renew() }},
		{"/approve", "[yes|no] [ID]", "approve or deny a script", (*chatting).approve},
		{"/history", "", "your conversations", func(c *chatting, ctx context.Context, _ []string) { c.showConversations(ctx) }},
		{"/open", "ID", "continue a conversation by number or id", (*chatting).open},
		{"/usage", "", "show the usage of this chat", func(c *chatting, _ context.Context, _ []string) { c.showUsage() }},
		{"/help", "", "this list", func(c *chatting, _ context.Context, _ []string) { c.help() }},
	}
}

// commandNames are all of them, for the completion by Tab.
func commandNames() (names []string) {
	for _, cmd := range chatCommands() {
		names = append(names, cmd.name)
	}
	return append(names, quitCommand)
}

const quitCommand = "/quit"

// command does what a line that begins with a slash asks for.
func (c *chatting) command(ctx context.Context, line string) (quit bool) {
	words := strings.Fields(line)
	if words[0] == quitCommand || words[0] == "/exit" {
		return true
	}
	run, done := c.interrupts.stoppable(ctx)
	defer done()
	for _, cmd := range chatCommands() {
		if cmd.name == words[0] {
			cmd.run(c, run, words[1:])
			return false
		}
	}
	c.screen.note(badStyle, "  unknown command %s; /help lists all; to send it as a message, begin with a space", oneLine(words[0], 40))
	return false
}

func (c *chatting) help() {
	for _, cmd := range chatCommands() {
		c.entry(entry{strings.TrimSpace(cmd.name + " " + cmd.args), cmd.about}, 24)
	}
	c.entry(entry{quitCommand, "leaves, as Ctrl-D does"}, 24)
	c.screen.note(dimStyle, `  Ctrl-C stops a turn; a \ at the end of a line continues it;`)
	c.screen.note(dimStyle, "  a line that begins with a space is a message, not saved in the history")
}

// entry shows a name and what it is, on one line, the names in a column of width.
func (c *chatting) entry(e entry, width int) {
	room := c.screen.room() - 2
	name := oneLine(e.Name, min(width-1, room))
	pad := strings.Repeat(" ", max(width-columns(name), 1))
	about := ""
	if left := room - columns(name) - len(pad); left > 8 {
		about = pad + oneLine(e.Description, left)
	}
	c.screen.note(plainStyle, "  %s%s", c.screen.styled(nameStyle, name), about)
}

// entries shows a list.
func (c *chatting) entries(list []entry, none string) {
	if len(list) == 0 {
		c.screen.note(dimStyle, "  %s", none)
		return
	}
	width := 0
	for _, e := range list {
		width = max(width, columns(oneLine(e.Name, 0))+2)
	}
	for _, e := range list {
		c.entry(e, min(width, max(c.screen.room()/2, 12)))
	}
}

func (c *chatting) showSkills(ctx context.Context) {
	skills, err := atMost(c.api.Skills(ctx), mostSkills)
	var agents []skill.AgentSkill
	if err == nil {
		agents, err = atMost(c.api.AgentSkills(ctx), mostSkills)
	}
	if err != nil {
		c.screen.failed(err)
		return
	}
	var list []entry
	for _, d := range skills {
		about := d.Description
		if !d.Enabled {
			about = "(disabled) " + about
		}
		if d.Trust == skill.Community {
			about = "(community) " + about
		}
		list = append(list, entry{string(d.ID), about})
	}
	for _, s := range agents {
		list = append(list, entry{s.Name, "(Agent Skill, " + s.Trust.String() + ") " + s.Description})
	}
	c.entries(list, "no skills found")
}

func (c *chatting) showTools(ctx context.Context) {
	b, err := c.api.Tools(ctx, "openai")
	if err != nil {
		c.screen.failed(err)
		return
	}
	list, err := toolNames(b)
	if err != nil {
		c.screen.failed(err)
		return
	}
	c.entries(list, "no tools found")
}

func (c *chatting) renew() {
	c.conversation, c.pending = "", nil
	c.screen.note(dimStyle, "  a new conversation begins with your next message")
}

// approve answers what waits: /approve [yes|no] [ID].
func (c *chatting) approve(ctx context.Context, args []string) {
	yes, id := true, ""
	if len(args) > 0 {
		if said, known := yesOrNo(args[0]); known {
			yes, args = said, args[1:]
		}
	}
	if len(args) > 0 {
		id, args = args[0], args[1:]
	}
	switch {
	case len(args) > 0:
		c.screen.note(badStyle, "  too many arguments; use /approve [yes|no] [ID]")
		return
	case len(c.pending) == 0:
		c.screen.note(dimStyle, "  no pending approval in this conversation")
		return
	case id == "":
		id = c.pending[0].ApprovalID
	case !slices.ContainsFunc(c.pending, func(p client.Awaited) bool { return p.ApprovalID == id }):
		c.screen.note(badStyle, "  approval %s is not pending in this conversation", oneLine(id, 64))
		return
	}
	_, _ = c.decide(ctx, id, yes) // what became of it is shown
}

// yesOrNo reads an answer.
func yesOrNo(s string) (yes, known bool) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "y", "yes":
		return true, true
	case "n", "no":
		return false, true
	}
	return false, false
}

// mostListed is how many conversations a list shows.
const mostListed = 20

func (c *chatting) showConversations(ctx context.Context) {
	list, err := atMost(c.api.Conversations(ctx), mostListed)
	if err != nil {
		c.screen.failed(err)
		return
	}
	if len(list) == 0 {
		c.screen.note(dimStyle, "  no conversations yet")
		return
	}
	c.listed = nil
	for i, s := range list {
		c.listed = append(c.listed, s.ID)
		mark := " "
		if s.ID == c.conversation {
			mark = "*"
		}
		head := fmt.Sprintf("%s%2d  %s  ", mark, i+1, s.UpdatedAt.Local().Format("2006-01-02 15:04"))
		c.screen.note(plainStyle, " %s%s", head, oneLine(s.Title, max(c.screen.room()-len(head)-1, 8)))
	}
	c.screen.note(dimStyle, "  /open 1 continues the first one")
}

// open goes on with another conversation.
func (c *chatting) open(ctx context.Context, args []string) {
	if len(args) != 1 {
		c.screen.note(badStyle, "  use a number from the list of /history, or an id")
		return
	}
	id := args[0]
	if n, err := strconv.Atoi(id); err == nil && n >= 1 && n <= len(c.listed) {
		id = c.listed[n-1]
	}
	if err := c.goOn(ctx, id); err != nil {
		c.screen.failed(err)
	}
}

// shownMessages is how many messages remind a person of a conversation.
const shownMessages = 6

// goOn makes a conversation that there is this chat's own, and shows how it ended.
func (c *chatting) goOn(ctx context.Context, id string) error {
	v, err := c.api.Conversation(ctx, id)
	if err != nil {
		return err
	}
	c.conversation, c.pending, c.calls = v.ID, v.Pending, map[string]client.ToolCall{}
	c.screen.note(dimStyle, "  %s", oneLine(fmt.Sprintf("%s (%s, %s)", v.Title, countOf(len(v.Messages), "message"), v.UpdatedAt.Local().Format(time.DateTime)), c.screen.room()-2))
	var said []client.Message
	for _, m := range v.Messages {
		for _, call := range m.Calls {
			c.calls[call.ID] = client.ToolCall{ID: call.ID, SkillID: call.Name, Arguments: []byte(call.Arguments)}
		}
		if m.Text != "" && m.Role != "tool" {
			said = append(said, m)
		}
	}
	for _, m := range said[max(len(said)-shownMessages, 0):] {
		mark := "  "
		if m.Role == "user" {
			mark = "> "
		}
		c.screen.note(dimStyle, "  %s%s", mark, oneLine(m.Text, c.screen.room()-4))
	}
	c.ask(ctx)
	return nil
}

func (c *chatting) showUsage() {
	t := c.total
	parts := []string{countOf(t.turns, "turn"), countOf(t.calls, "call")}
	c.screen.note(plainStyle, "  %s", strings.Join(append(parts, spent(t.usage)...), ", "))
	if c.conversation != "" {
		c.screen.note(dimStyle, "  the conversation is %s", oneLine(c.conversation, 64))
	}
}
