package agentskills

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// The limits of the arguments of one run.
const (
	MaxArgs     = 256
	MaxArg      = 128 << 10 // bytes of one
	MaxAllArgs  = 1 << 20   // bytes of all
	MaxFileName = 1024      // bytes of a name of a resource or script
)

// optionName is a key of arguments that are an object.
var optionName = regexp.MustCompile(`^-{0,2}[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// negative is a number that begins as an option does.
var negative = regexp.MustCompile(`^-(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)

// Arguments makes a command line of the arguments of a tool call, a JSON value; nothing
// and null are none.
//
// A list gives one argument for each of its texts, numbers and booleans. An object gives
// options as Python's argparse and most others read them:
//
//	{"value": 1}            --value 1
//	{"verbose": true}       --verbose
//	{"verbose": false}      nothing, and null the same
//	{"files": ["a", "b"]}   --files a b    (nargs="+"; for an option that is given many
//	                                       times a list is the form to use)
//	{"title": "-x"}         --title=-x     (text that begins with a hyphen)
//	{"-n": 5}               -n 5           (a name that begins with hyphens stays as it is)
//
// The order is that of the text. Whatever is nested deeper is refused.
func Arguments(raw json.RawMessage) ([]string, error) {
	args, _, err := arguments(raw)
	return args, err
}

// arguments gives the object too, where it is one.
func arguments(raw json.RawMessage) (args []string, object json.RawMessage, err error) {
	trimmed := strings.TrimSpace(string(raw))
	switch {
	case trimmed == "" || trimmed == "null":
		return nil, nil, nil
	case trimmed[0] == '[':
		args, err = fromList([]byte(trimmed))
	case trimmed[0] == '{':
		object = json.RawMessage(trimmed)
		args, err = fromObject(object)
	default:
		err = badArgs(`args must be a list of texts, such as ["--value", "1"], or an object, such as {"value": 1}`)
	}
	if err == nil {
		err = checkArgs(args)
	}
	if err != nil {
		return nil, nil, err
	}
	return args, object, nil
}

func badArgs(format string, a ...any) error {
	return &skill.Error{
		Op: "agentskills.Arguments", Code: skill.InvalidArgument, Subject: "args",
		Message: skill.CleanText(fmt.Sprintf(format, a...), skill.MaxMessage),
	}
}

func fromList(raw []byte) ([]string, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, badArgs("args is not valid JSON")
	}
	args := make([]string, 0, min(len(list), MaxArgs+1))
	for i, v := range list {
		s, ok := scalarText(v)
		if !ok {
			return nil, badArgs("args[%d] must be text, a number, true or false; lists and objects within args are not accepted: write them as text", i)
		}
		args = append(args, s)
		if len(args) > MaxArgs {
			break // checkArgs says so
		}
	}
	return args, nil
}

func fromObject(raw []byte) (args []string, err error) {
	err = strictjson.Object(raw, func(key, value []byte) error {
		name := string(key)
		if !optionName.MatchString(name) {
			return badArgs("args has the name %q; names are letters, digits, _, - and ., as in {\"value\": 1}; for arguments without a name give a list", skill.CleanText(name, 60))
		}
		if !strings.HasPrefix(name, "-") {
			name = "--" + name
		}
		switch value[0] {
		case 'n', 'f': // null, false
		case 't':
			args = append(args, name)
		case '{':
			return badArgs("args.%s is an object; objects within args are not accepted: write it as text", skill.CleanText(string(key), 60))
		case '[':
			list, err := fromList(value)
			if err != nil {
				return badArgs("args.%s must be a list of texts and numbers; what is nested deeper is not accepted: write it as text", skill.CleanText(string(key), 60))
			}
			if len(list) > 0 {
				args = append(append(args, name), list...)
			}
		default:
			s, _ := scalarText(value)
			if strings.HasPrefix(s, "-") && !negative.MatchString(s) {
				args = append(args, name+"="+s)
			} else {
				args = append(args, name, s)
			}
		}
		return nil
	})
	if err != nil && skill.CodeOf(err) == skill.Internal { // of strictjson
		return nil, badArgs("args is not an object that can be read: %v", err)
	}
	return args, err
}

// scalarText is a value that is neither list nor object, as the text of an argument.
func scalarText(raw json.RawMessage) (string, bool) {
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err == nil
	case '[', '{', 'n':
		return "", false
	}
	return string(raw), true // a number as it was written, true or false
}

// checkArgs holds a command line against what every script can be given.
func checkArgs(args []string) error {
	if len(args) > MaxArgs {
		return badArgs("args has more than %d arguments; give long lists as input, which the script reads from standard input", MaxArgs)
	}
	total := 0
	for i, a := range args {
		total += len(a)
		switch {
		case len(a) > MaxArg || total > MaxAllArgs:
			return &skill.Error{
				Op: "agentskills.Arguments", Code: skill.PayloadTooLarge, Subject: "args",
				Message: fmt.Sprintf("the arguments are too long: at most %d bytes each and %d in all; give long text as input, which the script reads from standard input", MaxArg, MaxAllArgs),
			}
		case strings.ContainsRune(a, 0):
			return badArgs("argument %d holds a NUL character, which no command line can carry", i+1)
		case strings.ContainsAny(a, "\n\r"):
			return badArgs("argument %d holds the end of a line; give text of several lines as input, which the script reads from standard input", i+1)
		case !utf8.ValidString(a):
			return badArgs("argument %d is not valid UTF-8", i+1)
		}
	}
	return nil
}

// checkName refuses names of resources and scripts that could not be one, or that want
// to leave the skill's folder.
func checkName(kind, name string) error {
	code := skill.InvalidArgument
	var problem string
	switch {
	case name == "":
		problem = "is empty"
	case len(name) > MaxFileName:
		problem = fmt.Sprintf("has more than %d bytes", MaxFileName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		problem = "holds control characters, such as the end of a line or NUL"
	case name[0] == '/' || name[0] == '~' || len(name) > 1 && name[1] == ':':
		code, problem = skill.ForbiddenPath, "is absolute"
	case strings.Contains(name, `\`):
		code, problem = skill.ForbiddenPath, "holds a backslash"
	case slices.Contains(strings.Split(name, "/"), ".."):
		code, problem = skill.ForbiddenPath, "leads out of the skill's folder"
	default:
		return nil
	}
	return &skill.Error{
		Op: "agentskills.checkName", Code: code, Subject: skill.CleanText(name, 80),
		Message: fmt.Sprintf("the name of the %s %s; want one as %s lists them, relative to the skill's folder and with /", kind, problem, ToolLoad),
	}
}
