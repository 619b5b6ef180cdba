package skill

import (
	"encoding/json"
	"time"
)

// Schedule is a call that a host makes again and again, as the caller that made the schedule.
type Schedule struct {
	Name      string          `json:"name"`
	Skill     ID              `json:"skill"`
	Version   string          `json:"version,omitempty"` // "": the enabled one of that time
	Input     json.RawMessage `json:"input"`
	Cron      string          `json:"cron"`      // five fields, or @hourly and the like
	TimeZone  string          `json:"time_zone"` // of the IANA database
	Missed    Missed          `json:"missed"`
	CreatedAt time.Time       `json:"created_at"`
	NextAt    time.Time       `json:"next_at"`
	LastAt    *time.Time      `json:"last_at,omitempty"`           // when the last call was made
	LastID    string          `json:"last_execution_id,omitempty"` // of it
	Skipped   Code            `json:"skipped,omitempty"`           // why no call was made at the last time
}

// Missed is what a schedule does about times at which no host was running.
type Missed string

// What is done about them.
const (
	RunMissed  Missed = "run"  // one call, as soon as there is a host again
	SkipMissed Missed = "skip" // none
)
