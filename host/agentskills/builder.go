package agentskills

import (
	"context"
	"errors"
	"log/slog"

	"openskill/sdk/skill"
)

// Builder puts a [Provider] together, step by step. What is wrong is told by Build. A
// Builder is used by one goroutine.
type Builder struct {
	sources []func(log *slog.Logger) (Source, error)
	filters []func(Skill) bool
	options Options
}

// NewBuilder makes an empty one.
func NewBuilder() *Builder { return &Builder{} }

// UseFileSkill adds the skill of a folder, or those in it. o may be nil.
func (b *Builder) UseFileSkill(path string, o *FileOptions) *Builder {
	return b.UseFileSkills([]string{path}, o)
}

// UseFileSkills adds the skills of folders, which are the operator's own. o may be nil;
// its Runner runs the scripts of these.
func (b *Builder) UseFileSkills(paths []string, o *FileOptions) *Builder {
	roots := make([]Root, len(paths))
	for i, p := range paths {
		roots[i] = Root{Path: p, Trust: skill.Trusted}
	}
	return b.UseRoots(roots, o)
}

// UseRoots adds the skills of folders of any trust. o may be nil.
func (b *Builder) UseRoots(roots []Root, o *FileOptions) *Builder {
	b.sources = append(b.sources, func(log *slog.Logger) (Source, error) {
		c := FileOptions{}
		if o != nil {
			c = *o
		}
		if c.Log == nil {
			c.Log = log
		}
		return NewFileSource(roots, &c)
	})
	return b
}

// UseSkill adds a skill.
func (b *Builder) UseSkill(s Skill) *Builder { return b.UseSkills(s) }

// UseSkills adds skills.
func (b *Builder) UseSkills(skills ...Skill) *Builder {
	b.sources = append(b.sources, func(*slog.Logger) (Source, error) { return NewInMemory(skills...) })
	return b
}

// UseSource adds whatever a source gives.
func (b *Builder) UseSource(s Source) *Builder {
	b.sources = append(b.sources, func(*slog.Logger) (Source, error) {
		if s == nil {
			return nil, errors.New("agentskills: a source is nil")
		}
		return s, nil
	})
	return b
}

// UseUploads adds uploaded skills. changes returns the revision of the uploads at every look, and list is called if it
// has changed or if some could not be read. o may be nil.
func (b *Builder) UseUploads(changes func() uint64, list func() (all []Upload, whole bool), o *FileOptions) *Builder {
	b.options.Changes = changes
	b.sources = append(b.sources, func(*slog.Logger) (Source, error) { return newUploads(changes, list, o) })
	return b
}

// UseFilter keeps the skills that keep wants, of all sources. Several filters hold
// together.
func (b *Builder) UseFilter(keep func(Skill) bool) *Builder {
	b.filters = append(b.filters, keep)
	return b
}

// UsePromptTemplate sets [Options.InstructionPrompt].
func (b *Builder) UsePromptTemplate(template string) *Builder {
	b.options.InstructionPrompt = template
	return b
}

// UseScriptApproval sets [Options.ScriptApproval]; nil: no run is asked about.
func (b *Builder) UseScriptApproval(ask func(ctx context.Context, a Approval) error) *Builder {
	b.options.ScriptApproval = ask
	return b
}

// UseFileScriptRunner sets what runs scripts that are files, and which extensions it
// takes; none: [DefaultRunExtensions].
func (b *Builder) UseFileScriptRunner(r ScriptRunner, extensions ...string) *Builder {
	b.options.ScriptRunner, b.options.RunExtensions = r, extensions
	return b
}

// UseLogger sets where warnings go.
func (b *Builder) UseLogger(log *slog.Logger) *Builder {
	b.options.Log = log
	return b
}

// UseOptions changes the options.
func (b *Builder) UseOptions(configure func(*Options)) *Builder {
	configure(&b.options)
	return b
}

// Build makes the provider: the sources as one, filtered, without twins, cached.
func (b *Builder) Build() (*Provider, error) {
	if len(b.sources) == 0 {
		return nil, errors.New("agentskills: there is no source of skills; UseFileSkills and others add one")
	}
	log := logger(b.options.Log)
	var all []Source
	var errs []error
	for _, open := range b.sources {
		s, err := open(log)
		all, errs = append(all, s), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	source := all[0]
	if len(all) > 1 {
		source = Aggregate(log, all...)
	}
	for _, keep := range b.filters {
		source = Filter(source, keep)
	}
	return New(Deduplicate(source, log), &b.options)
}
