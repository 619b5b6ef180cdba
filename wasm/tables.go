package wasm

import wbin "openskill/wasm/binary"

// What wazero v1.12.0 keeps for each instance, in bytes: of an element segment a
// reference and the object that it leads to for each entry, of a table a reference.
const (
	segmentEntry = 40
	tableEntry   = 8
)

// freeTables is how much of that does not count towards the memory of a run, in bytes:
// no real program has more, and it is within what a run may cost beside its limit.
const freeTables = 8 << 20

// tableBytes is what the tables and element segments of a module take in each instance,
// before tables grow.
func tableBytes(m *wbin.Module) uint64 {
	n := uint64(0)
	for i := range m.Elems {
		n += segmentEntry * uint64(len(m.Elems[i].Funcs)+len(m.Elems[i].Exprs)) // at most Limits.TableEntries
	}
	for i := range m.Tables {
		n += tableEntry * uint64(m.Tables[i].Min)
	}
	return n
}

// countedTables is how much of that counts towards the memory of a run.
func countedTables(bytes uint64) uint64 { return bytes - min(bytes, freeTables) }
