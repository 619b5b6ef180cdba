package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"openskill/sdk/skill"
)

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func ruleText(r skill.HTTPRule) string {
	b, err := r.MarshalText()
	if err != nil {
		return ""
	}
	return string(b)
}

// limitsText says limits in a line; those that are zero are left to the host.
func limitsText(l skill.LimitsJSON) string {
	var parts []string
	for _, f := range l.Fields() {
		if *f.Value > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", f.Name, amount(*f.Value)))
		}
	}
	if len(parts) == 0 {
		return "those of the host"
	}
	return strings.Join(parts, ", ")
}

// optionText is a value of an enum as a list shows it.
func optionText(raw string) string {
	return oneLine(valueOf(aText, []byte(raw)), 80)
}

func lineText(n int) string {
	if n == 0 {
		return ""
	}
	return ":" + strconv.Itoa(n)
}

func msOf(n int64) time.Duration { return max(time.Duration(n)*time.Millisecond, time.Microsecond) }

func usedText(used *uint64, limit uint64, bytes bool) string {
	say := amount
	if bytes {
		say = size[uint64]
	}
	switch {
	case used == nil:
		return ""
	case limit == 0:
		return say(*used)
	}
	return say(*used) + " of " + say(limit)
}

func argumentsText(args []string, cut bool) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(visible(a, 2000) + "\n")
	}
	if cut {
		b.WriteString("… and more, not stored")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func roleName(role string) string {
	if role == "user" {
		return "You"
	}
	return "Agent"
}

func roleClass(role string) string {
	if role == "user" {
		return "mine"
	}
	return "agents"
}

// askedFor says what an approval would be good for.
func askedFor(policy string) string {
	switch policy {
	case "call":
		return "for this one call."
	case "enable":
		return "to enable this version."
	}
	return "for this version of the skill."
}
