package skill

import "time"

// Webhook is an address that is told when calls have ended.
type Webhook struct {
	Name       string     `json:"name"`
	URL        string     `json:"url"`
	Secret     string     `json:"secret,omitempty"` // whsec_ and base64; only in the answer that creates it
	CreatedAt  time.Time  `json:"created_at"`
	LastAt     *time.Time `json:"last_at,omitempty"`     // of the last request
	LastStatus int        `json:"last_status,omitempty"` // of its answer; missing: there was none
	Waiting    int        `json:"waiting"`               // calls that it is not told of yet
}
