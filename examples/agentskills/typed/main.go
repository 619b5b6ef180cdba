// Command typed makes a skill of a Go struct: its fields and methods are the resource
// and the script, and the tags of the parameters become their JSON Schema.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math"

	"openskill/host/agentskills"
	"openskill/sdk/skill"
)

// UnitConverter is the skill.
type UnitConverter struct {
	Table   string                                         `resource:"conversion-table" description:"Lookup table of multiplication factors for common unit conversions."`
	Convert func(context.Context, Conversion) (any, error) `script:"convert" description:"Multiplies a value by a conversion factor and returns the result as JSON."`
}

// Conversion are the parameters of the script.
type Conversion struct {
	Value  float64 `json:"value" description:"The value to convert."`
	Factor float64 `json:"factor" description:"What to multiply it by, from the table." minimum:"0"`
}

// Converted is what it gives.
type Converted struct {
	Value  float64 `json:"value"`
	Factor float64 `json:"factor"`
	Result float64 `json:"result"`
}

func convert(_ context.Context, c Conversion) (any, error) {
	return Converted{c.Value, c.Factor, math.Round(c.Value*c.Factor*1e4) / 1e4}, nil
}

const table = `# Conversion Tables

Formula: **result = value × factor**

| From       | To         | Factor   |
|------------|------------|----------|
| miles      | kilometers | 1.60934  |
| kilometers | miles      | 0.621371 |
| pounds     | kilograms  | 0.453592 |
| kilograms  | pounds     | 2.20462  |
`

const instructions = `Use this skill when the user asks to convert between units.

1. Review the conversion-table resource to find the correct factor.
2. Use the convert script, passing the value and factor from the table.
3. Present the result clearly with both units.
`

func main() {
	s := agentskills.Typed(agentskills.Frontmatter{
		Name:        "unit-converter",
		Description: "Convert between common units using a multiplication factor. Use when asked to convert miles, kilometers, pounds, or kilograms.",
	}, instructions, &UnitConverter{Table: table, Convert: convert})
	provider, err := agentskills.NewBuilder().UseSkill(s).Build()
	if err != nil {
		log.Fatal(err)
	}
	ctx, me := context.Background(), skill.Local()
	about, _, err := provider.Load(ctx, me, "unit-converter")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", about.Scripts[0].Parameters)
	r := provider.CallTool(ctx, me, agentskills.ToolRun, json.RawMessage(`{"skill_name": "unit-converter", "script_file": "convert", "args": {"value": 26.2, "factor": 1.60934}}`), "example")
	fmt.Printf("%s\n", r.Data)
	r = provider.CallTool(ctx, me, agentskills.ToolRun, json.RawMessage(`{"skill_name": "unit-converter", "script_file": "convert", "args": ["--value", "far"]}`), "example")
	fmt.Printf("%s\n", r.Error.Message)
}
