package skill

import "encoding/json"

// VersionState is what is so of one uploaded version.
type VersionState struct {
	ID      ID     `json:"id"`
	Version string `json:"version"`
	Digest  string `json:"digest"`           // "sha256:" and 64 hex digits
	State   State  `json:"state"`            // of the version, after what was asked
	Reason  string `json:"reason,omitempty"` // why it is quarantined
	Shared  bool   `json:"shared,omitempty"` // approved for all tenants
}

// UploadResult answers an upload.
type UploadResult struct {
	ID      ID              `json:"id"`
	Version string          `json:"version"`
	Digest  string          `json:"digest"`
	State   State           `json:"state"`  // StateDisabled; StateDryRun where nothing was kept
	Report  json.RawMessage `json:"report"` // of admission: what the skill asks for, and what it gets
}
