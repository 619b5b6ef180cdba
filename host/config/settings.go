package config

import (
	"reflect"
	"strings"
	"time"

	"openskill/host/grants"
	"openskill/sdk/skill"
)

// Auth says who may call.
type Auth string

// The values of OPENSKILL_AUTH.
const (
	AuthNone     Auth = "none"     // the caller is the operator of this machine
	AuthRequired Auth = "required" // refused by this release, which has no credentials
)

// Settings of one host. Paths are absolute after [Load].
type Settings struct {
	Listen      string `env:"OPENSKILL_LISTEN" envDefault:"127.0.0.1:8000" flag:"listen" accepts:"host:port with a loopback host, like 127.0.0.1:8000; port 0 takes a free one" doc:"address that the host listens on"`
	HTTPBaseURL string `env:"OPENSKILL_HTTP_BASE_URL" envDefault:"http://127.0.0.1:8000" flag:"http-base-url" accepts:"an http or https address without query" doc:"address at which clients reach the host"`
	Auth        Auth   `env:"OPENSKILL_AUTH" flag:"auth" accepts:"none (required needs credentials, which this release does not have)" doc:"whether callers must show who they are; unset: none on loopback, required elsewhere"`

	SkillsDir string `env:"OPENSKILL_SKILLS_DIR" envDefault:"./skills" flag:"skills" path:"dir" accepts:"a folder" doc:"folder of trusted skills, each a folder with a skill.yaml"`
	CLIDir    string `env:"OPENSKILL_CLI_DIR" envDefault:"./skills_cli" flag:"cli-dir" path:"dir" accepts:"a folder" doc:"folder of trusted scripts named {id}.py"`
	DataRoot  string `env:"OPENSKILL_ALLOWED_ROOT" envDefault:"./data" flag:"data" path:"dir" accepts:"a folder" doc:"the one folder that skills may read, shown to them as /data; without it skills see no data"`
	StateDir  string `env:"OPENSKILL_STATE_DIR" envDefault:"./.openskill" flag:"state" path:"any" accepts:"a folder outside the data folder; made when missing" doc:"folder of the host's own files: caches, work in progress"`
	Python    string `env:"OPENSKILL_PYTHON" envDefault:"python3" flag:"python" accepts:"the name or path of a Python 3" doc:"interpreter of the CLI runner"`

	TimeoutMS uint64 `env:"OPENSKILL_TIMEOUT_MS" envDefault:"15000" flag:"timeout-ms" min:"1" max:"86400000" doc:"time of one call, in ms, where the manifest says nothing"`
	MemoryMB  uint64 `env:"OPENSKILL_MEMORY_MB" envDefault:"256" flag:"memory-mb" min:"1" max:"4096" doc:"linear memory of one call, in MiB, where the manifest says nothing"`
	Fuel      uint64 `env:"OPENSKILL_FUEL" envDefault:"20000000000" flag:"fuel" min:"1" max:"4611686018427387904" doc:"fuel of one call, in units of about an instruction, where the manifest says nothing"`
	OutputKB  uint64 `env:"OPENSKILL_OUTPUT_KB" envDefault:"1024" flag:"output-kb" min:"1" max:"65536" doc:"standard output of one call, in KiB, where the manifest says nothing"`
	ScratchMB uint64 `env:"OPENSKILL_SCRATCH_MB" envDefault:"16" flag:"scratch-mb" min:"1" max:"65536" doc:"files of one call below /work, in MiB, where the manifest says nothing"`

	MaxTimeoutMS uint64 `env:"OPENSKILL_MAX_TIMEOUT_MS" envDefault:"120000" flag:"max-timeout-ms" min:"1" max:"86400000" doc:"most time that any call gets, in ms"`
	MaxMemoryMB  uint64 `env:"OPENSKILL_MAX_MEMORY_MB" envDefault:"1024" flag:"max-memory-mb" min:"1" max:"4096" doc:"most linear memory that any call gets, in MiB"`
	MaxFuel      uint64 `env:"OPENSKILL_MAX_FUEL" envDefault:"1000000000000" flag:"max-fuel" min:"1" max:"4611686018427387904" doc:"most fuel that any call gets, in units"`
	MaxOutputKB  uint64 `env:"OPENSKILL_MAX_OUTPUT_KB" envDefault:"16384" flag:"max-output-kb" min:"1" max:"65536" doc:"most standard output that any call gets, in KiB"`
	MaxScratchMB uint64 `env:"OPENSKILL_MAX_SCRATCH_MB" envDefault:"256" flag:"max-scratch-mb" min:"1" max:"65536" doc:"most scratch that any call gets, in MiB"`

	MaxBodyKB           uint64 `env:"OPENSKILL_MAX_BODY_KB" envDefault:"1024" flag:"max-body-kb" min:"1" max:"65536" doc:"largest body of a request, in KiB"`
	Concurrency         int    `env:"OPENSKILL_CONCURRENCY" envDefault:"32" flag:"concurrency" min:"1" max:"4096" doc:"calls that run at once; more wait a moment and are then refused with 429"`
	ConcurrencyPerSkill int    `env:"OPENSKILL_CONCURRENCY_PER_SKILL" envDefault:"16" flag:"concurrency-per-skill" min:"1" max:"4096" doc:"calls of one skill that run at once"`

	HTTPAllow string `env:"OPENSKILL_HTTP_ALLOW" flag:"http-allow" accepts:"entries between semicolons or line ends, like https://api.example.com/v1/ GET,POST; for an upload @tenant/skill before it" doc:"requests that skills may make, of those that their manifests ask for; unset: none"`
	EnvAllow  string `env:"OPENSKILL_ENV_ALLOW" flag:"env-allow" accepts:"entries between semicolons or line ends, each NAME=value, or NAME of a variable of the host; for an upload @tenant/skill before it" doc:"variables that skills may be given, of those that their manifests ask for; unset: none"`

	Debug bool `env:"OPENSKILL_DEBUG" envDefault:"0" flag:"debug" accepts:"0 or 1" doc:"log at the level debug"`

	allowed *grants.Allowed
	origins map[string]Source
	unknown []string
}

// Allowed is what OPENSKILL_HTTP_ALLOW and OPENSKILL_ENV_ALLOW say.
func (s *Settings) Allowed() *grants.Allowed { return s.allowed }

// Source is where a value came from.
type Source string

// The sources, highest first.
const (
	FromFlag    Source = "flag"
	FromEnv     Source = "environment"
	FromDotEnv  Source = ".env"
	FromFile    Source = "openskill.yaml"
	FromDefault Source = "default"
)

// Setting is one row of the table of settings.
type Setting struct {
	Env     string // name in the environment and in .env
	Flag    string // without dashes
	Key     string // in openskill.yaml
	Default string // "" for none
	Accepts string
	Doc     string

	field string // name in Settings
	path  string // "dir": must exist when given; "any": a path; "": no path
}

// Table lists all settings in the order of their declaration.
func Table() []Setting {
	t := reflect.TypeFor[Settings]()
	var out []Setting
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("env")
		if name == "" {
			continue
		}
		s := Setting{
			Env: name, Flag: f.Tag.Get("flag"), Key: strings.ToLower(strings.TrimPrefix(name, prefix)),
			Default: f.Tag.Get("envDefault"), Accepts: f.Tag.Get("accepts"), Doc: f.Tag.Get("doc"),
			field: f.Name, path: f.Tag.Get("path"),
		}
		if s.Accepts == "" {
			s.Accepts = "a whole number from " + f.Tag.Get("min") + " to " + f.Tag.Get("max")
		}
		out = append(out, s)
	}
	return out
}

const prefix = "OPENSKILL_"

// Origin says where the value of a setting came from, by its name in the
// environment.
func (s *Settings) Origin(env string) Source { return s.origins[env] }

// Unknown lists names that begin with OPENSKILL_ in the environment or .env and
// that are no setting of this release: perhaps misspelt, worth a warning.
func (s *Settings) Unknown() []string { return s.unknown }

// Defaults are the limits of a call whose manifest says nothing.
func (s *Settings) Defaults() skill.Limits {
	return skill.LimitsJSON{TimeoutMS: s.TimeoutMS, MemoryMB: s.MemoryMB, Fuel: s.Fuel, OutputKB: s.OutputKB, ScratchMB: s.ScratchMB}.Limits()
}

// Caps are the limits that no call exceeds.
func (s *Settings) Caps() skill.Limits {
	return skill.LimitsJSON{TimeoutMS: s.MaxTimeoutMS, MemoryMB: s.MaxMemoryMB, Fuel: s.MaxFuel, OutputKB: s.MaxOutputKB, ScratchMB: s.MaxScratchMB}.Limits()
}

// MaxBody is the largest body of a request, in bytes.
func (s *Settings) MaxBody() int {
	return int(s.MaxBodyKB) << 10 //nolint:gosec // at most 64 MiB by its range
}

// Timeout is the default time of a call.
func (s *Settings) Timeout() time.Duration { return s.Defaults().Timeout }
