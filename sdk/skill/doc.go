// Package skill holds the words of openSkill: skills, calls, limits, grants,
// principals, results and errors.
//
// Every other package speaks in these types. The package imports the standard
// library only, so that it can be read, vendored or generated from without the
// rest of the house.
//
// Two rules hold throughout:
//
//   - The zero value refuses. A zero [Principal] may do nothing, zero [Grants]
//     grant nothing, and zero in a manifest's [Limits] means "the host's
//     default", never "unlimited".
//   - A guest's failure is data, a host's failure is an error. What a skill did
//     (trapped, ran out of fuel, printed nonsense) comes back in a [Reply] or a
//     [Result]; only what the host could not do comes back as a Go error.
package skill
