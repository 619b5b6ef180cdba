package javascript

import (
	"encoding/json"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// What would need the data of Intl is refused by an error that names it; what is right
// is in testdata/console.js.
func TestRefusesOtherLanguages(t *testing.T) {
	refused := map[string]string{
		"(1234.5).toLocaleString('de-DE')":                                    `toLocaleString for "de-DE"`,
		"(1234.5).toLocaleString(['fr', 'en'])":                               `toLocaleString for "fr"`,
		"(1).toLocaleString('en-US', { style: 'unit', unit: 'liter' })":       "toLocaleString with the option unit",
		"(1).toLocaleString('en-US', { style: 'unit' })":                      "toLocaleString with the style unit",
		"(1).toLocaleString('en-US', { style: 'currency', currency: 'CHF' })": "toLocaleString with the currency CHF",
		"(1e6).toLocaleString('en-US', { notation: 'compact' })":              "toLocaleString with the option notation",
		"(1e6).toLocaleString('en-US', { maximumSignificantDigits: 2 })":      "toLocaleString with the option maximumSignificantDigits",
		"10n.toLocaleString('ar-EG')":                                         `toLocaleString for "ar-EG"`,
		"[1, 2].toLocaleString('de')":                                         `toLocaleString for "de"`,
		"new Uint8Array([1]).toLocaleString('de')":                            `toLocaleString for "de"`,
		"new Date(0).toLocaleString('de-DE')":                                 `toLocaleString for "de-DE"`,
		"new Date(0).toLocaleString('en-US', { timeZone: 'Europe/Berlin' })":  `toLocaleString for the time zone "Europe/Berlin"`,
		"new Date(0).toLocaleDateString('en-US', { month: 'long' })":          "toLocaleDateString with the option month",
		"new Date(0).toLocaleTimeString(undefined, { hour12: false })":        "toLocaleTimeString with the option hour12",
		"new Date(-1e14).toLocaleDateString()":                                "toLocaleDateString of a year before 1",
		"'a'.localeCompare('b', 'sv')":                                        `localeCompare for "sv"`,
		"'a'.localeCompare('b', 'en', { caseFirst: 'upper' })":                "localeCompare with the option caseFirst",
		"'a'.localeCompare('ø')":                                              `localeCompare of "ø"`,
		"['ж', 'а'].sort((a, b) => a.localeCompare(b))":                       `localeCompare of "`,
		"'i'.toLocaleUpperCase('tr')":                                         `toLocaleUpperCase for "tr"`,
		"'I'.toLocaleLowerCase(['lt'])":                                       `toLocaleLowerCase for "lt"`,
	}
	list := musttest.Get(json.Marshal(keys(refused)))(t)
	c := script(t, `
const said = {};
for (const text of JSON.parse(std.in.readAsString())) {
  try { said[text] = String((0, eval)(text)) } catch (e) { said[text] = e + ' ' + e.stack.split('\n')[0] }
}
print(JSON.stringify(said))`)
	c.Stdin = list
	reply := running(t)(t, c)
	var said map[string]string
	if err := json.Unmarshal(reply.Stdout, &said); err != nil {
		t.Fatalf("%v: %s%s", err, reply.Stdout, reply.Stderr)
	}
	for text, want := range refused {
		got := said[text]
		if !strings.HasPrefix(got, "RangeError: "+want) || !strings.Contains(got, " is not available in the sandbox, which has no Intl: ") {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
		// Its first frame is the caller's; a list's elements are asked by the prelude.
		if list := strings.Contains(text, "1, 2]") || strings.Contains(text, "[1]"); !list && strings.Contains(got, "(<null>") {
			t.Errorf("%s shows a frame of the prelude: %s", text, got)
		}
	}
}

// A wrong call is the same error as elsewhere, and a call through another name works.
func TestLocaleMethodsAreMethods(t *testing.T) {
	c := script(t, `
for (const f of [
  () => Number.prototype.toLocaleString.call('x'), () => Date.prototype.toLocaleString.call(1), () => (1).toLocaleString('en', { style: 'currency' }),
  () => (1).toLocaleString('en', { maximumFractionDigits: 21 }), () => (1).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 1 }),
]) try { print(f()) } catch (e) { print(e.name) }
print(Number.prototype.toLocaleString.call(1234), Number.prototype.toLocaleString.name, Object.keys(Number.prototype).length);
`)
	if got, want := string(running(t)(t, c).Stdout), strings.Repeat("TypeError\n", 3)+strings.Repeat("RangeError\n", 2)+"1,234 toLocaleString 0\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
