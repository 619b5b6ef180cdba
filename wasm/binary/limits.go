package binary

// Limits cap what [Decode] accepts. A zero field means the default beside it,
// never "unlimited". The defaults leave room for a Go program of 14 MB with
// 100,000 data segments and for CPython (26 MB).
type Limits struct {
	Size         int    // bytes of the module; 64 MiB
	Types        uint32 // 10,000
	Imports      uint32 // 1,000
	Exports      uint32 // 1,000
	Functions    uint32 // that the module defines; 100,000
	Tables       uint32 // 4
	TableEntries uint32 // of all element segments together; 1,000,000
	Globals      uint32 // 10,000
	Tags         uint32 // 1,000
	Elems        uint32 // element segments; 10,000
	Datas        uint32 // data segments; 200,000
	BodySize     uint32 // bytes of one function body; 1 MiB
	Locals       uint32 // of one function, parameters aside; 5,000
	LocalGroups  uint32 // declarations of locals in all functions together; 1,000,000
	Values       uint32 // parameters, and likewise results, of one type; 1,000
	NameLength   uint32 // bytes of one name; 4,096
	Customs      uint32 // custom sections; 1,000
	CustomBytes  uint32 // bytes of all custom sections together; 32 MiB
}

// WithDefaults gives l with every zero field filled in; nil gives the defaults.
func (l *Limits) WithDefaults() Limits {
	var o Limits
	if l != nil {
		o = *l
	}
	if o.Size == 0 {
		o.Size = 64 << 20
	}
	for _, f := range []struct {
		p *uint32
		d uint32
	}{
		{&o.Types, 10_000},
		{&o.Imports, 1_000},
		{&o.Exports, 1_000},
		{&o.Functions, 100_000},
		{&o.Tables, 4},
		{&o.TableEntries, 1_000_000},
		{&o.Globals, 10_000},
		{&o.Tags, 1_000},
		{&o.Elems, 10_000},
		{&o.Datas, 200_000},
		{&o.BodySize, 1 << 20},
		{&o.Locals, 5_000},
		{&o.LocalGroups, 1_000_000},
		{&o.Values, 1_000},
		{&o.NameLength, 4_096},
		{&o.Customs, 1_000},
		{&o.CustomBytes, 32 << 20},
	} {
		if *f.p == 0 {
			*f.p = f.d
		}
	}
	return o
}
