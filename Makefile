# make skills    builds the WebAssembly form of the skills that come with openSkill
# make runtimes  fetches the language runtimes that skills need
#
# Both may be run at any time and twice at once: they do only what is left to do,
# and name in one line what cannot be had.

GO ?= go
STATE := $(or $(OPENSKILL_STATE_DIR),.openskill)

.PHONY: skills runtimes runtime-python

GO_SKILLS := file_search log_transform
RUST_SKILLS := echo

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

runtimes: runtime-python

runtime-python:
	@OPENSKILL_STATE_DIR="$(STATE)" scripts/fetch-python.sh
