package app

import (
	"openskill/host/app/config"
	"openskill/host/store"
)

// Warnings returns the settings that weaken a protection of the security page, with what
// each of them costs and what to set instead. They are told at start, by doctor and in the
// console; Name is the setting's.
func Warnings(s *config.Settings) []Finding {
	var list []Finding
	warn := func(name, detail string) { list = append(list, Finding{Name: name, Detail: detail}) }
	if s.Workers == config.Shared {
		warn("OPENSKILL_WORKERS", "the skills of all tenants share one worker process: a guest that escapes from the sandbox reaches other tenants' calls; set tenant or skill")
	}
	if s.AgentNative != "" {
		warn("OPENSKILL_AGENT_SKILLS_NATIVE", "Python scripts of Agent Skills in this folder run on this machine's Python, outside the sandbox: a script can use what the protections of the CLI runner leave open; unset it to run them in the sandbox")
	}
	if store.Unencrypted(s.DatabaseURL) {
		warn("OPENSKILL_DATABASE_URL", "the connection to the database may be unencrypted: an attacker on the network could read and change records and keys; add sslmode=verify-full")
	}
	if s.JWTSecret != "" { // with a key set both must be there
		if s.JWTIssuer == "" {
			warn("OPENSKILL_JWT_ISSUER", "JWTs of any program that has the secret are accepted; set the issuer (iss) of your JWTs")
		}
		if s.JWTAudience == "" {
			warn("OPENSKILL_JWT_AUDIENCE", "JWTs for other services with the same secret are accepted; set the audience (aud) of your JWTs")
		}
	}
	return list
}
