// Package allow keeps what the operator allows the scripts of Agent Skills: requests, and
// variables with their values.
//
// A SKILL.md has no permissions, so a person decides what its scripts may do. A [Grant] is for
// one skill by name and for one state of its files, by their digest. A skill whose files changed
// is refused until the operator allows it again or revokes the grant: [Store.Granted].
//
// # Values
//
// Values are encrypted (AES-256-GCM) with a key that is not in the database: a file of the state
// folder that no backup has. A variable without hosts is given to scripts as it is. Of one with
// hosts, scripts have a placeholder; package host/workers/egress puts the value into requests to
// those hosts. See [Placeholder].
package allow
