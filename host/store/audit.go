package store

// auditStore keeps records of runs.
type auditStore struct{ db *DB }
