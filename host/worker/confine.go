package worker

// Confinement is what a process of ours may still do.
type Confinement struct {
	Read  []string // folders and files
	Write string   // a folder, for one that compiles; "" for none
	// Memory bounds private memory, and each file that is written, in bytes, and Seconds
	// the time of processors; 0: not by limits of the process. A worker's memory is bounded from outside, because
	// the address space that its sandboxes reserve would count.
	Memory, Seconds uint64
	Background      bool // others go first
	// By the operator's settings.
	NoLandlock, NoSeccomp bool
}
