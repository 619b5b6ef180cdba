// Package agentskills hands Agent Skills (agentskills.io) to whoever asks: what there
// are, their instructions, their files, and runs of their scripts.
//
// A [Skill] is a folder with a SKILL.md ([FileSkill]), or made in Go ([InlineSkill],
// [Typed]). Skills come from a [Source]; [Aggregate], [Filter], [Deduplicate] and
// [Cache] are sources around others. A [Provider] answers callers from one source:
// who sees what, the three tools of models, the text for a system prompt. [Builder]
// puts one together.
//
// A folder's SKILL.md is held against the open specification. What breaks a rule that
// matters is reported with file and line and skipped; it never keeps a host from
// starting. A key that the specification does not know is reported and the skill is
// served all the same, because many public skills have some. [Validate] reports both.
//
// Nothing here executes files: a [ScriptRunner] does, which the host gives.
package agentskills
