package skill

import "time"

// NewSession is the value of the member session of run_code that creates a session.
const NewSession = "new"

// Session is an interpreter whose variables stay between the calls of a principal.
type Session struct {
	ID        string    `json:"id"`
	Language  string    `json:"language"`
	Workspace string    `json:"workspace"` // of calls that name no other one
	Packages  []string  `json:"packages"`  // that its calls need; never nil
	MemoryMB  uint64    `json:"memory_mb"` // limit of each call
	Size      int64     `json:"size"`      // bytes of the memory that differ from a new session
	Runs      int64     `json:"runs"`
	FuelUsed  uint64    `json:"fuel_used"` // of all runs
	Frozen    bool      `json:"frozen"`    // it is stored in the database, and any host can go on with it
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at"`
	ExpiresAt time.Time `json:"expires_at"` // use extends it
}

// SessionState is what a runner needs to go on with a session.
type SessionState struct {
	Seed  [32]byte // of the chance that the interpreter starts with; the same for all calls of the session
	Made  int64    // Unix time in seconds at which it starts; the same for all calls
	Most  uint64   // bytes that Reply.State may have
	State []byte   // Reply.State of the call before; nil: this is the first one
}
