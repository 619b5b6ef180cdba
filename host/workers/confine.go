package workers

// Confinement is what a process of ours may still do.
type Confinement struct {
	Read  []string // folders and files
	Write string   // a folder, for one that compiles; "" for none
	// Memory bounds private memory, in bytes, and Seconds the time of processors; 0: not by
	// limits of the process. A worker's memory is bounded from outside, because the address
	// space that its sandboxes reserve would count.
	Memory, Seconds uint64
	// Files bounds each file that is written, those in memory as well, in bytes; 0: Memory.
	Files      uint64
	Background bool // others go first
	Apart      bool // this process was started in a mount namespace of its own
}
