package preflight

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
)

// Summary says how many skills of a collection the sandbox can run. A script is covered when no
// finding says that it cannot run: granted requests and variables, and packages without native
// code, count as had. A skill is covered when all its scripts are.
type Summary struct {
	Skills int `json:"skills"` // folders
	Coverage
	Languages []LanguageCoverage `json:"languages"` // in order of their scripts
	Reasons   []Reason           `json:"reasons"`   // why others are not covered, the commonest first
	Proposals []Proposal         `json:"proposals"` // what operators would be asked for, the commonest first
	Cut       int                `json:"cut"`       // folders that were too large to look at whole
}

// Coverage counts skills that have scripts, and their scripts.
type Coverage struct {
	WithScripts    int `json:"with_scripts"`
	CoveredSkills  int `json:"covered_skills"`
	Scripts        int `json:"scripts"`
	CoveredScripts int `json:"covered_scripts"`
}

// LanguageCoverage is the coverage of scripts in one language, and of skills by those alone.
type LanguageCoverage struct {
	Language string `json:"language"`
	Coverage
}

// Reason is why scripts cannot run.
type Reason struct {
	Kind   Kind   `json:"kind"`
	What   string `json:"what"`
	Skills int    `json:"skills"` // in which it is found
	Alone  int    `json:"alone"`  // where it is the only one
}

// Proposal is something that scripts ask an operator for.
type Proposal struct {
	Kind   string `json:"kind"` // http, env, python or npm
	Name   string `json:"name"`
	Skills int    `json:"skills"`
}

// quoted is what differs in findings of one sort.
var quoted = regexp.MustCompile(`\("[^"]*"\)|^[^ ]+ is read, and|^[^\s("]*/`)

// Summarize sums up the reports of the folders of a collection; most bounds its lists of
// reasons and proposals.
func Summarize(reports []*Report, most int) *Summary {
	s := &Summary{Skills: len(reports), Languages: []LanguageCoverage{}}
	languages := map[string]*LanguageCoverage{}
	reasons, proposals := map[Reason][2]int{}, map[Proposal]int{}
	for _, r := range reports {
		if r.Cut {
			s.Cut++
		}
		if len(r.Scripts) == 0 {
			continue
		}
		s.count(r, languages)
		found := map[Reason]bool{}
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Severity == CannotRun {
				found[Reason{Kind: f.Kind, What: quoted.ReplaceAllString(f.What, "…")}] = true
			}
		}
		for reason := range found {
			n := reasons[reason]
			if n[0]++; len(found) == 1 {
				n[1]++
			}
			reasons[reason] = n
		}
		asked := map[Proposal]bool{}
		for _, n := range r.Needs.HTTP {
			asked[Proposal{Kind: "http", Name: n.Name}] = true
		}
		for _, n := range r.Needs.Env {
			asked[Proposal{Kind: "env", Name: n.Name}] = true
		}
		for _, n := range r.Needs.Packages {
			if !n.Native {
				asked[Proposal{Kind: n.Ecosystem, Name: n.Name}] = true
			}
		}
		for p := range asked {
			proposals[p]++
		}
	}
	for _, l := range languages {
		s.Languages = append(s.Languages, *l)
	}
	slices.SortFunc(s.Languages, func(a, b LanguageCoverage) int {
		return cmp.Or(cmp.Compare(b.Scripts, a.Scripts), cmp.Compare(a.Language, b.Language))
	})
	s.Reasons, s.Proposals = []Reason{}, []Proposal{}
	for r, n := range maps.All(reasons) {
		r.Skills, r.Alone = n[0], n[1]
		s.Reasons = append(s.Reasons, r)
	}
	slices.SortFunc(s.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Skills, a.Skills), cmp.Compare(b.Alone, a.Alone), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.What, b.What))
	})
	for p, n := range maps.All(proposals) {
		p.Skills = n
		s.Proposals = append(s.Proposals, p)
	}
	slices.SortFunc(s.Proposals, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(b.Skills, a.Skills), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	s.Reasons, s.Proposals = s.Reasons[:min(most, len(s.Reasons))], s.Proposals[:min(most, len(s.Proposals))]
	return s
}

// count adds a folder that has scripts.
func (s *Summary) count(r *Report, languages map[string]*LanguageCoverage) {
	own := map[string]*Coverage{}
	all := &Coverage{}
	for i := range r.Scripts {
		l := own[r.Scripts[i].Language]
		if l == nil {
			l = &Coverage{}
			own[r.Scripts[i].Language] = l
		}
		for _, c := range []*Coverage{all, l} {
			if c.Scripts++; r.Scripts[i].Verdict != CannotRun {
				c.CoveredScripts++
			}
		}
	}
	s.add(all)
	for name, c := range own {
		if languages[name] == nil {
			languages[name] = &LanguageCoverage{Language: name}
		}
		languages[name].add(c)
	}
}

// add adds one skill.
func (c *Coverage) add(one *Coverage) {
	c.WithScripts++
	c.Scripts += one.Scripts
	c.CoveredScripts += one.CoveredScripts
	if one.CoveredScripts == one.Scripts {
		c.CoveredSkills++
	}
}
