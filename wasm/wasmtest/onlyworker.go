package wasmtest

// OnlyWorker gives the modules that the checker accepts, and whose compilation
// only the end of a process bounds. Want does not count: they are not run.
func OnlyWorker() []Case {
	var nested Code
	for range 4000 {
		nested = Block(nested + Get(0) + BrIf(0))
	}
	deepBlocks := New()
	deepBlocks.Command(Repeat(12, nested))

	table := New()
	var cases Code
	for range 60 {
		var targets Code
		for range 16_000 {
			targets += "\x00"
		}
		cases += Block(Get(0) + Code("\x0e\x80\x7d") + targets + "\x00") // 16,000 targets and the default
	}
	table.Command(cases)

	return []Case{
		{Name: "W09 one function of 75,000 memory.copy", Module: OneLine(75_000)},
		{Name: "W09 one function of 48,000 blocks", Module: deepBlocks.Bytes()},
		{Name: "W09 sixty br_table of 16,000 targets", Module: table.Bytes()},
	}
}
