package runtimes

import (
	"slices"
	"strings"
)

// Package is a package of the package index that a runtime brings along.
type Package struct {
	Name    string   // as in requires, in the index's normal form
	Version string   // the one there is
	Imports []string // the top-level modules
	Pure    bool     // works without compiled parts, so slim has it too
}

// Packages are all packages of the scientific runtime, by name; the pure ones are in
// slim too. The list is not to be changed.
func Packages() []Package { return packages }

// packages is read off the wheel's manifest; a test holds it against the wheel.
var packages = []Package{
	{"attrs", "26.1.0", []string{"attr", "attrs"}, true},
	{"beautifulsoup4", "4.15.0", []string{"bs4"}, true},
	{"charset-normalizer", "3.5.2", []string{"charset_normalizer"}, true},
	{"cloudpickle", "3.1.2", []string{"cloudpickle"}, false},
	{"contourpy", "1.4.0", []string{"contourpy"}, false},
	{"cycler", "0.12.1", []string{"cycler"}, false},
	{"defusedxml", "0.7.1", []string{"defusedxml"}, true},
	{"et-xmlfile", "2.0.0", []string{"et_xmlfile"}, true},
	{"fonttools", "4.67.0", []string{"fontTools"}, false},
	{"formulaic", "1.2.2", []string{"formulaic"}, false},
	{"html5lib", "1.1", []string{"html5lib"}, true},
	{"interface-meta", "2.0.1", []string{"interface_meta"}, false},
	{"jinja2", "3.1.6", []string{"jinja2"}, true},
	{"joblib", "1.6.0", []string{"joblib"}, false},
	{"kiwisolver", "1.5.1", []string{"kiwisolver"}, false},
	{"lxml", "6.1.3", []string{"lxml"}, false},
	{"markupsafe", "3.0.4", []string{"markupsafe"}, true},
	{"matplotlib", "3.11.2", []string{"matplotlib", "mpl_toolkits", "pylab"}, false},
	{"more-itertools", "11.2.1", []string{"more_itertools"}, true},
	{"mpmath", "1.3.0", []string{"mpmath"}, false},
	{"narwhals", "2.27.1", []string{"narwhals"}, false},
	{"networkx", "3.7", []string{"networkx"}, false},
	{"numpy", "2.5.2", []string{"numpy"}, false},
	{"openpyxl", "3.1.5", []string{"openpyxl"}, true},
	{"packaging", "26.3", []string{"packaging"}, true},
	{"pandas", "3.0.6", []string{"pandas"}, false},
	{"patsy", "1.0.3", []string{"patsy"}, false},
	{"pillow", "13.0.0", []string{"PIL"}, false},
	{"pyparsing", "3.3.3", []string{"pyparsing"}, true},
	{"pypdf", "6.21.1", []string{"pypdf"}, true},
	{"python-dateutil", "2.9.0.post0", []string{"dateutil"}, true},
	{"pyyaml", "6.0.3", []string{"yaml"}, true},
	{"regex", "2026.9.29", []string{"regex"}, false},
	{"reportlab", "5.0.1", []string{"reportlab", "reportlab_mods", "reportlab_settings"}, false},
	{"scikit-learn", "1.9.1", []string{"sklearn"}, false},
	{"scipy", "1.18.1", []string{"scipy"}, false},
	{"seaborn", "0.13.2", []string{"seaborn"}, false},
	{"six", "1.17.0", []string{"six"}, true},
	{"soupsieve", "3.0.3", []string{"soupsieve"}, true},
	{"statsmodels", "0.15.0", []string{"statsmodels"}, false},
	{"sympy", "1.14.0", []string{"isympy", "sympy"}, false},
	{"tabulate", "0.10.0", []string{"tabulate"}, true},
	{"threadpoolctl", "3.7.0", []string{"threadpoolctl"}, false},
	{"tomli-w", "1.2.0", []string{"tomli_w"}, true},
	{"toolz", "1.2.0", []string{"tlz", "toolz"}, true},
	{"tqdm", "4.70.1", []string{"tqdm"}, true},
	{"typing-extensions", "4.16.0", []string{"typing_extensions"}, true},
	{"tzdata", "2026.5", []string{"tzdata"}, true},
	{"webencodings", "0.6.1", []string{"webencodings"}, true},
	{"wrapt", "2.5.1", []string{"wrapt"}, true},
	{"xlrd", "2.0.2", []string{"xlrd"}, true},
	{"xlsxwriter", "3.2.9", []string{"xlsxwriter"}, true},
	{"xmltodict", "1.0.4", []string{"xmltodict"}, true},
}

// normal is the index's normal form of a name: lower case, with single hyphens.
func normal(name string) string {
	var b strings.Builder
	gap := false
	for _, c := range strings.ToLower(name) {
		if c == '-' || c == '_' || c == '.' {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(c)
	}
	return b.String()
}

// packageNamed finds a package by its name in the index.
func packageNamed(name string) *Package {
	name = normal(name)
	i := slices.IndexFunc(packages, func(p Package) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &packages[i]
}

// Modules are the top-level modules of packages.
func Modules(names []string) (all []string) {
	for i := range packages {
		if p := &packages[i]; slices.ContainsFunc(names, func(name string) bool { return normal(name) == p.Name }) {
			all = append(all, p.Imports...)
		}
	}
	return all
}

// packageImported finds the package that brings a top-level module.
func packageImported(module string) *Package {
	i := slices.IndexFunc(packages, func(p Package) bool { return slices.Contains(p.Imports, module) })
	if i < 0 {
		return nil
	}
	return &packages[i]
}

// Imported reports whether some runtime has a package with this top-level module.
func Imported(module string) bool { return packageImported(module) != nil }

// packageOf finds the package that a member of the library belongs to; nil for those
// of the standard library.
func packageOf(member string) *Package {
	top, _, below := strings.Cut(member, "/")
	if info, ok := strings.CutSuffix(top, ".dist-info"); ok && below {
		name, _, _ := strings.Cut(info, "-")
		return packageNamed(name)
	}
	return packageImported(strings.TrimSuffix(top, ".pyc"))
}
