package skill

import "time"

// TenantUsage is what a tenant has stored, and what it has used of today's limits.
type TenantUsage struct {
	Tenant   string        `json:"tenant"`
	Stored   []StoredUsage `json:"stored"`
	Today    []DailyUsage  `json:"today"`
	ResetsAt time.Time     `json:"resets_at"` // when today ends (UTC)
}

// StoredUsage is what a tenant has stored of one kind, such as "uploads". A limit is nil
// where there is none.
type StoredUsage struct {
	Kind       string `json:"kind"`
	Count      int64  `json:"count"`
	CountLimit *int64 `json:"count_limit"`
	Bytes      *int64 `json:"bytes"` // nil: they are not counted
	BytesLimit *int64 `json:"bytes_limit"`
}

// DailyUsage is what a tenant has used today of one kind: "calls", "fuel",
// "model_requests", "model_tokens" or "model_cost" (millionths of a US dollar).
type DailyUsage struct {
	Kind  string `json:"kind"`
	Used  int64  `json:"used"`
	Limit int64  `json:"limit"`
}
