package records_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A guest chooses how many files it leaves and their names, and a record stays for years: it
// lists as many as have room, and has the number and a hash of all.
func TestRecordsListSoManyArtifacts(t *testing.T) {
	for name, c := range map[string]struct {
		files, length int
		all           bool
	}{
		"long names":         {1000, 200, false},
		"short names":        {1000, 3, false},
		"one very long name": {1, 20_000, false},
		"an ordinary run":    {50, 30, true},
		"none":               {0, 0, true},
	} {
		for _, policy := range []records.Policy{records.KeepNone, records.KeepHash, records.KeepFull} {
			s := newFaulty(t)
			l := open(t, s, func(o *records.Options) { o.Policy = policy })
			began, f := call("acme"), success()
			for i := range c.files {
				f.Artifacts = append(f.Artifacts, records.ArtifactInfo{Name: fmt.Sprintf("%d%s", i, strings.Repeat("n", c.length)), Size: 3, SHA256: strings.Repeat("e", 64)})
			}
			musttest.Do(t, l.Started(t.Context(), began, nil))
			musttest.Do(t, l.Finished(t.Context(), began, f, nil))
			recs := musttest.Get(s.Records(t.Context(), "acme", 2, 1))(t)
			if n := len(recs[0].Body); n > 17<<10 {
				t.Errorf("%s, %s: the record has %d bytes", name, policy, n)
			}
			e := musttest.Get(s.Execution(t.Context(), "acme", began.ExecutionID))(t)
			listed, left := e.Finished.Artifacts, e.Finished.Unlisted
			all := c.all || policy != records.KeepFull && c.files == 1 // others cut a name
			if (left == nil) != all || all && len(listed) != c.files {
				t.Errorf("%s, %s: %d are listed, %+v", name, policy, len(listed), left)
			}
			if left == nil {
				continue
			}
			if len(listed)+left.Count != c.files || left.Bytes != int64(3*left.Count) || c.files > 1 && len(listed) < 50 {
				t.Errorf("%s, %s: %d are listed, and %+v", name, policy, len(listed), left)
			}
			if policy == records.KeepFull { // whoever has the files can make the hash
				whole, err := json.Marshal(f.Artifacts)
				if sum := sha256.Sum256(whole); err != nil || left.SHA256 != hex.EncodeToString(sum[:]) {
					t.Errorf("%s: the hash of the list is another one, %v", name, err)
				}
			}
		}
	}
}

// A tenant whose records take as much as they may begins nothing, and is told why. Other
// tenants' calls go on, and what runs ends on record.
func TestRefusesCallsOfFullRecords(t *testing.T) {
	s := newFaulty(t)
	l := open(t, s, nil)
	runs := call("acme")
	musttest.Do(t, l.Started(t.Context(), runs, nil))
	s.Fill("acme")
	err := l.Started(t.Context(), call("acme"), nil)
	wantCode(t, err, skill.RateLimited)
	if err == nil || !strings.Contains(err.Error(), "OPENSKILL_STORAGE_MB") {
		t.Errorf("it does not say what to do: %v", err)
	}
	if err := l.Started(t.Context(), call("beta"), nil); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if err := l.Finished(t.Context(), runs, success(), nil); err != nil {
		t.Errorf("what runs does not end: %v", err)
	}
	wantStatus(t, s, runs.ExecutionID, records.Success, "")
	if err := l.Ready(); err != nil {
		t.Errorf("the host is not ready: %v", err)
	}
}
