package capability

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"openskill/host/pyast"
	"openskill/host/tools/ordered"
	"openskill/sdk/skill"
)

// Script is what a script's parser of the command line takes.
type Script struct {
	Description string          `json:"description"` // of the parser, or of the script; ""
	Input       json.RawMessage `json:"input_schema"`
	// Partial says that the parser was not followed to its end: it may take more. The
	// schema then lets more through.
	Partial bool `json:"partial,omitempty"`

	options []option
	command *option // of which subcommand; nil: there are none
}

// option is one argument of a parser.
type option struct {
	name       string // in the schema: of the longest flag without its dashes, or of the place
	flag       string // as it is written, --name; "" for one that goes by its place
	off        string // --no-name, of BooleanOptionalAction
	value      bool   // a value follows the flag
	set        bool   // a flag without a value, given when true
	count      bool
	list       bool // several values
	repeat     bool // the flag is repeated for each of them
	commands   []string
	schema     *ordered.Object
	required   bool
	subcommand string // whose option it is; "" of all
}

// Command makes a schema of the parser of a script's command line. It is nil where the
// script has none that could be followed.
//
// Options are named by their longest flag without dashes, and arguments without a flag by
// their own name. Those of subcommands are all there, each saying in its description whose
// it is. See [Script.Arguments] for the way back.
func Command(m *pyast.Module) *Script {
	root := mainParser(m)
	if root < 0 {
		return nil
	}
	p := &m.Parsers[root]
	s := &Script{Partial: p.Dynamic || m.UnknownParser}
	for _, text := range []*pyast.Expr{p.Keyword("description"), p.Keyword("usage")} {
		if d, ok := text.Text(); ok && s.Description == "" {
			s.Description = skill.CleanText(d, maxDescription)
		}
	}
	if s.Description == "" {
		s.Description = skill.CleanText(parseDoc(m.Docstring).summary, maxDescription)
	}
	b := &commandBuilder{m: m, t: newTyper(m, false), s: s}
	b.parser(root, "", 0)
	input, err := ordered.Encode(b.schema())
	if err != nil {
		return nil
	}
	s.Input = input
	return s
}

// mainParser is the index of the parser with the most to say that is not another's.
func mainParser(m *pyast.Module) int {
	best, most := -1, -1
	parents := map[int]bool{}
	for i := range m.Parsers {
		for _, p := range m.Parsers[i].Parents {
			parents[p] = true
		}
	}
	for i := range m.Parsers {
		p := &m.Parsers[i]
		if n := len(p.Arguments) + 2*len(p.Subparsers); p.Parent < 0 && !parents[i] && n > most {
			best, most = i, n
		}
	}
	return best
}

type commandBuilder struct {
	m *pyast.Module
	t *typer
	s *Script
}

// parser adds the arguments of a parser, and of its subcommands.
func (b *commandBuilder) parser(index int, command string, deep int) {
	if deep > 4 {
		b.s.Partial = true
		return
	}
	p := &b.m.Parsers[index]
	if p.Dynamic {
		b.s.Partial = true
	}
	for _, parent := range p.Parents {
		for i := range b.m.Parsers[parent].Arguments {
			b.argument(&b.m.Parsers[parent].Arguments[i], command)
		}
	}
	for i := range p.Arguments {
		b.argument(&p.Arguments[i], command)
	}
	if len(p.Subparsers) == 0 {
		return
	}
	if command != "" { // commands of commands are not told
		b.s.Partial = true
		return
	}
	call := p.Subparsers[0].Call
	o := option{name: "command", required: false}
	if dest, ok := call.Keyword("dest").Text(); ok && dest != "" {
		o.name = dest
	}
	if v, ok := call.Keyword("required").Bool(); ok {
		o.required = v
	}
	var values []json.RawMessage
	var told []string
	for i := range b.m.Parsers {
		sub := &b.m.Parsers[i]
		if sub.Parent != index || sub.Command == "" || slices.Contains(o.commands, sub.Command) {
			continue
		}
		o.commands = append(o.commands, sub.Command)
		values = append(values, quoted(sub.Command))
		if help, ok := sub.Keyword("help").Text(); ok {
			told = append(told, sub.Command+": "+help)
		}
	}
	o.schema = enumOf(values)
	if len(values) == 0 {
		o.schema, b.s.Partial = typed("string"), true
	}
	describe(o.schema, strings.Join(told, "; "))
	if help, ok := call.Keyword("help").Text(); ok {
		describe(o.schema, help)
	}
	b.s.command = &o
	for i := range b.m.Parsers {
		if sub := &b.m.Parsers[i]; sub.Parent == index && sub.Command != "" {
			b.parser(i, sub.Command, deep+1)
		}
	}
}

// maxOptions is how many arguments of a script are told.
const maxOptions = 300

// argument adds what add_argument says.
func (b *commandBuilder) argument(a *pyast.Argument, command string) {
	if len(b.s.options) >= maxOptions {
		b.s.Partial = true
		return
	}
	o := option{subcommand: command}
	var flags []string
	for _, e := range a.Call.Args {
		name, ok := e.Text()
		if !ok {
			b.s.Partial = true
			return
		}
		flags = append(flags, name)
	}
	dest, _ := a.Call.Keyword("dest").Text()
	switch {
	case len(flags) == 0 && dest == "":
		b.s.Partial = true
		return
	case len(flags) == 0:
		o.name = dest
	case !strings.HasPrefix(flags[0], "-"):
		o.name = flags[0]
	default:
		for _, f := range flags {
			if len(f) > len(o.flag) && strings.HasPrefix(f, "--") || o.flag == "" {
				o.flag = f
			}
		}
		o.name = strings.TrimLeft(o.flag, "-")
	}
	if !b.shape(&o, a) {
		return
	}
	b.say(&o, a)
	if v, ok := a.Call.Keyword("required").Bool(); ok {
		o.required = v
	}
	if a.Group != nil {
		o.required = false // one of several
	}
	for i := range b.s.options {
		if b.s.options[i].name == o.name && b.s.options[i].subcommand == o.subcommand {
			b.s.options[i] = o
			return
		}
	}
	b.s.options = append(b.s.options, o)
}

// shape finds the schema of an argument by its action, type, choices and number.
func (b *commandBuilder) shape(o *option, a *pyast.Argument) bool {
	action, known := a.Call.Keyword("action").Text()
	e := a.Call.Keyword("action")
	o.required = o.flag == ""
	switch {
	case e == nil || known && action == "store":
	case !known && e.Last() == "BooleanOptionalAction":
		o.set, o.off, o.schema = true, "--no-"+o.name, typed("boolean")
		return true
	case !known:
		b.s.Partial = true // a class of the script's own: what it takes is not known
	default:
		switch action {
		case "store_true", "store_const", "append_const":
			o.set, o.schema = true, typed("boolean")
			if action == "store_true" {
				o.schema.Set("default", false)
			}
			return true
		case "store_false":
			// The object says what is given on the command line, as the flag's name does.
			o.set, o.schema = true, typed("boolean", "default", false)
			return true
		case "count":
			o.count, o.schema = true, typed("integer", "minimum", 0)
			return true
		case "append", "extend":
			o.repeat = action == "append"
		case "help", "version":
			return false
		default:
			b.s.Partial = true
		}
	}
	o.value = true
	one := b.one(a)
	o.schema = one
	nargs := a.Call.Keyword("nargs")
	text, _ := nargs.Text()
	number := 0
	if nargs != nil {
		number, _ = strconv.Atoi(string(nargs.Value))
	}
	many := func(pairs ...any) { o.list, o.schema = true, typed("array", append([]any{"items", one}, pairs...)...) }
	switch {
	case text == "?":
		o.required = false
	case text == "*":
		many()
		o.required = false
	case text == "+":
		many("minItems", 1)
	case text == "..." || nargs != nil && nargs.Last() == "REMAINDER" || text == "A...":
		many()
		o.required = false
	case number > 0:
		many("minItems", number, "maxItems", number)
	}
	switch {
	case o.repeat && o.list:
		o.schema = typed("array", "items", o.schema)
	case o.repeat:
		o.list, o.schema = true, typed("array", "items", one)
	case action == "extend" && !o.list:
		many()
	}
	return true
}

// one is the schema of one value.
func (b *commandBuilder) one(a *pyast.Argument) *ordered.Object {
	s := typed("string")
	e := a.Call.Keyword("type")
	if e != nil && e.Kind == pyast.KindName {
		switch canonical(e.Name) {
		case "int":
			s = typed("integer")
		case "float", "decimal.Decimal", "fractions.Fraction":
			s = typed("number")
		case "bool":
			s = typed("boolean")
		case "uuid.UUID":
			s = typed("string", "format", "uuid")
		case "json.loads":
			s = &ordered.Object{}
		}
		switch e.Name {
		case "datetime.date.fromisoformat":
			s = typed("string", "format", "date")
		}
		if c := b.m.Class(e.Name); c != nil {
			if kind, _ := b.t.kind(c, 0); kind == enumClass {
				s = enumOf(b.t.members(c))
			}
		}
	}
	choices := a.Call.Keyword("choices")
	if choices == nil {
		return s
	}
	if choices.Kind == pyast.KindCall && choices.Name == "range" {
		ranged(s, choices.Of)
		return s
	}
	v := b.choices(choices, 0)
	values := elements(v)
	if len(values) == 0 || len(values) > 200 {
		return s
	}
	list := make([]any, len(values))
	for i := range values {
		list[i] = values[i]
	}
	s.Set("enum", list)
	if w := enumOf(values).Get("type"); s.Text("type") == "string" && w != nil {
		s.Set("type", w)
	}
	return s
}

// choices are what choices= names: a literal, a name for one, or the keys of a table, also
// within list(…) or sorted(…).
func (b *commandBuilder) choices(e *pyast.Expr, deep int) json.RawMessage {
	if v := b.t.literalOf(e); v != nil || e == nil || deep > 3 {
		return v
	}
	if e.Kind == pyast.KindCall {
		table, keys := strings.CutSuffix(e.Name, ".keys")
		switch {
		case keys && len(e.Of) == 0:
			return b.choices(&pyast.Expr{Kind: pyast.KindName, Name: table}, deep+1)
		case len(e.Of) == 1 && slices.Contains([]string{"list", "sorted", "tuple", "set", "frozenset"}, e.Name):
			return b.choices(e.Of[0], deep+1)
		}
	}
	return b.keys(e)
}

// keys are the keys of a table at the top of the module.
func (b *commandBuilder) keys(e *pyast.Expr) json.RawMessage {
	if e == nil || e.Kind != pyast.KindName {
		return nil
	}
	a := b.m.Alias(e.Name)
	if a == nil || a.Value == nil || a.Value.Kind != pyast.KindDict {
		return nil
	}
	var list []any
	for _, k := range a.Value.Keys {
		if k.Value == nil {
			return nil
		}
		list = append(list, k.Value)
	}
	v, err := ordered.Encode(list)
	if err != nil {
		return nil
	}
	return v
}

// elements are those of an array, and the keys of an object.
func elements(v json.RawMessage) (list []json.RawMessage) {
	if json.Unmarshal(v, &list) == nil {
		return list
	}
	if o, err := ordered.DecodeObject(v); err == nil {
		for _, m := range o.Members {
			list = append(list, quoted(m.Key))
		}
	}
	return list
}

// ranged adds the bounds of range(…).
func ranged(s *ordered.Object, of []*pyast.Expr) {
	var n []int
	for _, e := range of {
		i, err := strconv.Atoi(string(e.Value))
		if err != nil {
			return
		}
		n = append(n, i)
	}
	switch {
	case len(n) == 1:
		n = []int{0, n[0]}
	case len(n) != 2:
		return
	}
	s.Set("minimum", n[0])
	s.Set("maximum", n[1]-1)
}

// say adds description and default.
func (b *commandBuilder) say(o *option, a *pyast.Argument) {
	d := a.Call.Keyword("default")
	v := b.t.literalOf(d)
	if help, ok := a.Call.Keyword("help").Text(); ok {
		shown := "None"
		if v != nil {
			shown = strings.Trim(string(v), `"`)
		}
		help = strings.ReplaceAll(help, "%(default)s", shown)
		help = strings.ReplaceAll(help, "%(prog)s", "the script")
		if o.subcommand != "" {
			help = "(" + o.subcommand + ") " + help
		}
		describe(o.schema, strings.ReplaceAll(help, "%%", "%"))
	} else if o.subcommand != "" {
		describe(o.schema, "of the command "+o.subcommand)
	}
	if v == nil || string(v) == "null" || len(v) > maxDefault || o.set && !o.valued() {
		return
	}
	if w := wordOf(v); isA(o.schema, w) || w == "integer" && isA(o.schema, "number") {
		o.schema.Set("default", v)
	}
	if o.flag == "" && a.Call.Keyword("nargs") != nil {
		o.required = false
	}
}

// valued reports whether a switch can be turned off too.
func (o *option) valued() bool { return o.off != "" }

// schema puts the options together: those of one name in several subcommands as one.
func (b *commandBuilder) schema() *ordered.Object {
	props := &ordered.Object{}
	var required []any
	need := func(o *option) {
		if o.required && o.subcommand == "" && !slices.Contains(required, any(o.name)) {
			required = append(required, o.name)
		}
	}
	if c := b.s.command; c != nil {
		props.Set(c.name, c.schema)
		need(c)
	}
	for i := range b.s.options {
		o := &b.s.options[i]
		need(o)
		old := props.Object(o.name)
		if old == nil {
			props.Set(o.name, o.schema.Clone())
			continue
		}
		x, y := old.Clone(), o.schema.Clone()
		text := x.Text("description") + "; " + y.Text("description")
		x.Delete("description")
		y.Delete("description")
		both := anyOf([]*ordered.Object{x, y}).Clone()
		describe(both, text)
		props.Set(o.name, both)
	}
	s := typed("object", "properties", props)
	if len(required) > 0 {
		s.Set("required", required)
	}
	s.Set("additionalProperties", b.s.Partial)
	return s
}
