package preflight

import (
	"regexp"
	"strings"
	"sync"
)

// jsLocales finds what formats and compares for a language. What is right
// here is what plugins/javascript/prelude/locale.js does not refuse.
var jsLocales = sync.OnceValue(func() *struct{ formats, compares, cases, keys, zone *regexp.Regexp } {
	return &struct{ formats, compares, cases, keys, zone *regexp.Regexp }{
		regexp.MustCompile(`\.(toLocale(?:Date|Time)?String)\s*\(\s*((?:[^()]|\([^()]*\))*)`),
		regexp.MustCompile(`\.localeCompare\s*\((?:[^(),]|\([^()]*\))*,\s*['"]([\w-]+)['"]`),
		regexp.MustCompile(`\.(toLocale(?:Upper|Lower)Case)\s*\(\s*['"]((?:tr|az|lt|el|hy)(?:-[\w-]+)?)['"]`),
		regexp.MustCompile(`([A-Za-z]\w*)\s*:`),
		regexp.MustCompile(`\btimeZone\s*:\s*['"]([^'"]+)['"]`),
	}
})

// jsLocale names what the sandbox refuses without Intl.
func (c *check) jsLocale(name string, line int, text string) {
	if !strings.Contains(text, "ocale") {
		return
	}
	find := jsLocales()
	for _, m := range find.formats.FindAllStringSubmatch(text, 20) {
		c.jsFormat(name, line, m[1], m[2], find.keys, find.zone)
	}
	for _, m := range find.compares.FindAllStringSubmatch(text, 20) {
		switch language, _, _ := strings.Cut(strings.ToLower(m[1]), "-"); language {
		case "en", "de", "fr", "it", "nl", "pt":
		default:
			c.find(name, line, CannotRun, KindSystem, "localeCompare for "+m[1]+": there is no Intl", "compare by a table of your own")
		}
	}
	for _, m := range find.cases.FindAllStringSubmatch(text, 20) {
		c.find(name, line, CannotRun, KindSystem, m[1]+" for "+m[2]+": there is no Intl", "use toUpperCase or toLowerCase, and change the other letters by hand")
	}
}

// jsFormat looks at the arguments of one of the methods toLocaleString.
func (c *check) jsFormat(name string, line int, method, args string, keys, zone *regexp.Regexp) {
	const instead = "format numbers and dates by hand, or for en-US"
	language, options, _ := strings.Cut(args, ",")
	switch language = strings.Trim(strings.TrimSpace(language), `'"[]`); strings.ToLower(language) {
	case "", "undefined", "en", "en-us":
	default:
		if language = strings.TrimSpace(language); strings.ContainsAny(args[:1], `'"[`) {
			c.find(name, line, CannotRun, KindSystem, method+" for "+language+": there is no Intl", instead)
			return
		}
		c.find(name, line, MayDiffer, KindSystem, method+" for "+language+": there is no Intl, and other languages than en-US are refused", instead)
	}
	if method != "toLocaleString" { // of dates, by Intl
		options = zone.FindString(options)
	}
	for _, key := range keys.FindAllStringSubmatch(zone.ReplaceAllString(options, ""), 20) {
		switch key[1] {
		case "timeZone":
		case "style", "currency", "minimumFractionDigits", "maximumFractionDigits", "useGrouping":
			if method == "toLocaleString" {
				continue
			}
			fallthrough
		default:
			c.find(name, line, CannotRun, KindSystem, method+" with the option "+key[1]+": there is no Intl", instead)
			return
		}
	}
	if m := zone.FindStringSubmatch(options); m != nil && !strings.EqualFold(m[1], "UTC") && !strings.EqualFold(m[1], "GMT") {
		c.find(name, line, CannotRun, KindSystem, method+" for the time zone "+m[1]+": there is no Intl", instead)
	}
}
