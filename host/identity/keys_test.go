package identity_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// house is a store of keys with a host on it.
type house struct {
	*harness
	store *keyStore
	keys  *identity.Keys
}

func openKeys(t *testing.T) *house {
	t.Helper()
	store := newStore(t)
	return &house{
		harness: open(t, func(o *identity.Options) { o.Keys = store }),
		store:   store, keys: identity.NewKeys(store),
	}
}

func (h *house) create(t *testing.T, life time.Duration) (*identity.Key, string) {
	t.Helper()
	k, text, err := h.keys.Create(t.Context(), identity.NewKey{
		Name: "robot", Tenant: "acme", Scopes: []string{skill.ScopeInvoke, skill.ScopeRead, skill.ScopeInvoke}, Life: life, By: "local",
	})
	musttest.Do(t, err)
	return k, text
}

// is checks that a key is let in, or refused as everybody is.
func (h *house) is(t *testing.T, text string, good bool) {
	t.Helper()
	p, err := h.Authenticate(t.Context(), identity.Credentials{APIKey: []string{text}})
	if good {
		if err != nil || p.Tenant != "acme" {
			t.Errorf("%+v, %v, want it to be good: %s", p, err, h.log)
		}
		return
	}
	if diff := cmp.Diff(refusal(t), err); diff != "" || p.ID != "" {
		t.Errorf("%+v, another answer: %s", p, diff)
	}
}

func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		k, text := h.create(t, 0)
		if k.ExpiresAt.Sub(k.CreatedAt) != identity.DefaultLife || k.State(time.Now()) != "active" {
			t.Errorf("%+v", k)
		}
		want := skill.Principal{ID: "key:" + k.ID, Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeInvoke, skill.ScopeRead}, Key: k.ID}
		for name, c := range map[string]identity.Credentials{
			"Authorization": {Authorization: []string{"Bearer " + text}},
			"bearer":        {Authorization: []string{"bEARER  " + text}},
			"X-API-Key":     {APIKey: []string{text}},
		} {
			p, err := h.Authenticate(t.Context(), c)
			if diff := cmp.Diff(want, p); diff != "" || err != nil {
				t.Errorf("%s: %v %s", name, err, diff)
			}
		}
		if n := h.store.Asked("Key"); n != 1 {
			t.Errorf("the key was looked up %d times", n)
		}
	})
}

// TestWrongKeys is case A02: whatever is wrong with a key, the answer is the same, and
// what was shown is not in the log.
func TestWrongKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		k, text := h.create(t, time.Hour)
		_, revoked := h.create(t, 0)
		revokedID, _ := identity.ParseKeyID(revoked)
		musttest.Get(h.keys.Revoke(t.Context(), revokedID))(t)
		other, otherText := h.create(t, 0)
		last := len(text) - 1
		flip := func(i int) string {
			c := byte('a')
			if text[i] == c {
				c = 'b'
			}
			return text[:i] + string(c) + text[i+1:]
		}
		checked := func(body string) string { return fmt.Sprintf("%s%08x", body, crc32.ChecksumIEEE([]byte(body))) }
		secretOf := func(text string) string { return text[21:73] }
		for name, c := range map[string]struct {
			shown identity.Credentials
			why   string
		}{
			"off by one at the end":     {bearer(flip(last)), "mistyped"},
			"off by one in the secret":  {bearer(flip(40)), "mistyped"},
			"off by one, and checked":   {bearer(checked(flip(40)[:73])), "wrong key secret"},
			"of another key":            {bearer(checked("osk_" + k.ID + "_" + secretOf(otherText))), "wrong key secret"},
			"unknown id":                {bearer(checked("osk_aaaaaaaaaaaaaaaa_" + secretOf(text))), "unknown key id"},
			"id in capitals":            {bearer(checked("osk_" + strings.ToUpper(k.ID) + "_" + secretOf(text))), "mistyped"},
			"revoked":                   {bearer(revoked), "revoked key"},
			"cut off":                   {bearer(text[:last]), "wrong key length"},
			"longer":                    {bearer(text + "a"), "wrong key length"},
			"with a space behind it":    {bearer(text + " "), "wrong key length"},
			"in the query":              {identity.Credentials{Query: true}, "credentials in the query"},
			"in the query too":          {identity.Credentials{Authorization: []string{"Bearer " + text}, Query: true}, "credentials in the query"},
			"in both headers":           {identity.Credentials{Authorization: []string{"Bearer " + text}, APIKey: []string{text}}, "more than one credential"},
			"twice":                     {identity.Credentials{APIKey: []string{text, text}}, "more than one credential"},
			"twice in Authorization":    {identity.Credentials{Authorization: []string{"Bearer " + text, "Bearer " + otherText}}, "more than one credential"},
			"joined by a proxy":         {bearer(text + ", Bearer " + text), "wrong key length"},
			"as a password":             {identity.Credentials{Authorization: []string{"Basic " + text}}, "another scheme"},
			"without a scheme":          {identity.Credentials{Authorization: []string{text}}, "another scheme"},
			"nothing behind the scheme": {identity.Credentials{Authorization: []string{"Bearer "}}, "Authorization is empty"},
			"the scheme alone":          {identity.Credentials{Authorization: []string{"Bearer"}}, "Authorization is empty"},
			"an empty header":           {identity.Credentials{Authorization: []string{""}}, "another scheme"},
			"an empty X-API-Key":        {identity.Credentials{APIKey: []string{""}}, "X-API-Key is not a valid key"},
			"a scheme in X-API-Key":     {identity.Credentials{APIKey: []string{"Bearer " + text}}, "X-API-Key is not a valid key"},
			"10 MB":                     {bearer(strings.Repeat("x", 10<<20)), "Authorization is too long"},
			"10 MB of X-API-Key":        {identity.Credentials{APIKey: []string{"osk_" + strings.Repeat("x", 10<<20)}}, "wrong key length"},
			"nothing":                   {identity.Credentials{}, "no credentials"},
		} {
			for range 2 {
				time.Sleep(time.Second) // the log takes so many lines a second
				h.log.Reset()
				p, err := h.Authenticate(t.Context(), c.shown)
				if diff := cmp.Diff(refusal(t), err); diff != "" || p.ID != "" {
					t.Errorf("%s: %+v, another answer: %s", name, p, diff)
				}
				log := h.log.String()
				if !strings.Contains(log, c.why) || strings.Contains(log, secretOf(text)[:8]) {
					t.Errorf("%s: the log says %s, want %q", name, log, c.why)
				}
				if c.why == "revoked key" && !strings.Contains(log, `"key":"`+revokedID+`"`) {
					t.Errorf("%s: the log does not name the key: %s", name, log)
				}
			}
		}
		h.is(t, text, true)
		time.Sleep(time.Hour)
		h.is(t, text, false) // expired
		h.is(t, otherText, true)
		if k, err := h.keys.Get(t.Context(), other.ID); err != nil || k.LastUsedAt.IsZero() && h.Close() != nil {
			t.Errorf("%+v, %v", k, err)
		}
	})
}

// A revocation holds on every host within half a second, and costs each of them four
// questions a second whatever the number of keys.
// What knows a principal by its key is told when that has ended, and of no other key.
func TestOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		one, _ := h.create(t, 0)
		two, _ := h.create(t, time.Hour)
		over := func(want ...bool) {
			t.Helper()
			for i, p := range []skill.Principal{one.Principal(), two.Principal(), {ID: "ann", Type: skill.Human, Tenant: "acme"}} {
				if got := h.Over(t.Context(), p); got != want[i] {
					t.Errorf("%s: %v", p.ID, got)
				}
			}
		}
		over(false, false, false)
		musttest.Get(h.keys.Revoke(t.Context(), one.ID))(t)
		time.Sleep(500 * time.Millisecond)
		over(true, false, false)
		time.Sleep(time.Hour)
		over(true, true, false)
	})
}

func TestRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		second := open(t, func(o *identity.Options) { o.Keys = h.store })
		var texts []string
		for range 20 {
			_, text := h.create(t, 0)
			texts = append(texts, text)
		}
		all := func() {
			for _, text := range texts {
				h.is(t, text, true)
			}
		}
		for range 100 { // 10 s of calls
			all()
			musttest.Get(second.Authenticate(t.Context(), bearer(texts[0])))(t)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := h.store.Asked("Changes"); n > 2*10*4+2 {
			t.Errorf("%d questions for changes in ten seconds of two hosts", n)
		}
		if n := h.store.Asked("Key"); n != 21 {
			t.Errorf("keys were looked up %d times", n)
		}
		id, _ := identity.ParseKeyID(texts[0])
		musttest.Get(h.keys.Revoke(t.Context(), id))(t)
		time.Sleep(500 * time.Millisecond)
		h.is(t, texts[0], false)
		if _, err := second.Authenticate(t.Context(), bearer(texts[0])); skill.CodeOf(err) != skill.Unauthorized {
			t.Errorf("on the second host: %v", err)
		}
		texts = texts[1:]
		all()
	})
}

// A key that was unknown a moment ago is known when it has been created.
func TestCreatedAfterItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		k, text := h.create(t, 0)
		empty := newStore(t)
		other := open(t, func(o *identity.Options) { o.Keys = empty })
		for range 3 {
			if _, err := other.Authenticate(t.Context(), bearer(text)); skill.CodeOf(err) != skill.Unauthorized {
				t.Fatal(err)
			}
		}
		if n := empty.Asked("Key"); n != 1 {
			t.Errorf("an unknown id was looked up %d times", n)
		}
		empty.Put(t, *k)
		time.Sleep(500 * time.Millisecond)
		if _, err := other.Authenticate(t.Context(), bearer(text)); err != nil {
			t.Errorf("after it was created: %v", err)
		}
	})
}

func TestRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		k, first := h.create(t, 100*time.Hour)
		h.is(t, first, true)
		rotate := func(overlap time.Duration) string {
			t.Helper()
			again, text, err := h.keys.Rotate(t.Context(), k.ID, overlap)
			if err != nil || again.ID != k.ID || !again.ExpiresAt.Equal(k.ExpiresAt) {
				t.Fatalf("%+v, %v", again, err)
			}
			time.Sleep(500 * time.Millisecond)
			return text
		}
		second := rotate(time.Hour)
		h.is(t, first, true)
		h.is(t, second, true)
		time.Sleep(time.Hour)
		h.is(t, first, false)
		h.is(t, second, true)
		third := rotate(time.Hour)
		fourth := rotate(time.Hour)
		h.is(t, second, false) // twice within the overlap: only the one before is good
		h.is(t, third, true)
		h.is(t, fourth, true)
		fifth := rotate(0)
		h.is(t, fourth, false)
		h.is(t, fifth, true)
		time.Sleep(100 * time.Hour)
		h.is(t, fifth, false)
		if _, _, err := h.keys.Rotate(t.Context(), k.ID, 0); skill.CodeOf(err) != skill.Conflict {
			t.Errorf("expired key: %v", err)
		}
	})
}

// While the database is gone, keys are believed for half a second, and then callers
// learn that it is not they who are wrong. It comes back without a restart.
func TestDatabaseGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		_, text := h.create(t, 0)
		h.is(t, text, true)
		h.store.Down(errors.New("gone"))
		time.Sleep(200 * time.Millisecond)
		h.is(t, text, true)
		time.Sleep(299 * time.Millisecond)
		h.is(t, text, true)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		for range 100 {
			_, err := h.Authenticate(t.Context(), bearer(text))
			if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != skill.AuditUnavailable || strings.Contains(e.Message, "gone") {
				t.Fatalf("got %v", err)
			}
		}
		if n := h.store.Asked("Changes"); n > 5 {
			t.Errorf("a database that is gone was asked %d times", n)
		}
		h.store.Down(nil)
		time.Sleep(100 * time.Millisecond)
		h.is(t, text, true)
		synctest.Wait()
		if log := h.log.String(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "cannot read") || !strings.Contains(log, "works again") {
			t.Errorf("the log says %s", log)
		}
	})
}

// A database that hangs keeps no caller for longer than its time.
func TestDatabaseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		_, text := h.create(t, 0)
		h.is(t, text, true)
		release := h.store.Block()
		time.Sleep(time.Second)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				begun := time.Now()
				_, err := h.Authenticate(t.Context(), bearer(text))
				if took := time.Since(begun); skill.CodeOf(err) != skill.AuditUnavailable || took > 2*time.Second {
					t.Errorf("%v after %v", err, took)
				}
			})
		}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err := h.Authenticate(ctx, bearer(text)); skill.CodeOf(err) != skill.Cancelled {
			t.Errorf("who leaves: %v", err)
		}
		all.Wait()
		release()
		time.Sleep(time.Second)
		h.is(t, text, true)
	})
}

// Those who make ids up ask the database for a few at a time, and do not drive out those
// who are known.
func TestManyUnknownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		_, text := h.create(t, 0)
		h.is(t, text, true)
		release := h.store.Block()
		var all sync.WaitGroup
		for _, k := range made(text, 500) {
			shown := bearer(k)
			all.Go(func() {
				if _, err := h.Authenticate(t.Context(), shown); skill.CodeOf(err) != skill.AuditUnavailable && skill.CodeOf(err) != skill.Unauthorized {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := h.store.Asked("Key"); n > 1+8 {
			t.Errorf("%d are looked up at once", n)
		}
		h.is(t, text, true)
		release()
		all.Wait()
		h.is(t, text, true)
	})
}

// made gives keys that nobody has, of the form of text.
func made(text string, n int) []string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	out := make([]string, n)
	for i := range out {
		body := "osk_aaaaaaaaaaaaaa" + string(letters[i/32]) + string(letters[i%32]) + text[20:73]
		out[i] = fmt.Sprintf("%s%08x", body, crc32.ChecksumIEEE([]byte(body)))
	}
	return out
}

// One network that makes ids up took all places, and the first request with a good key from
// elsewhere waited behind it.
func TestNetworksTakeTurnsToBeLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		_, text := h.create(t, 0)
		_, known := h.create(t, 0)
		h.is(t, known, true)
		release := h.store.Block()
		var all sync.WaitGroup
		show := func(from, text string, want skill.Code) {
			all.Go(func() {
				c := bearer(text)
				c.From = from
				if _, err := h.Authenticate(t.Context(), c); skill.CodeOf(err) != want {
					t.Errorf("from %s: %v", from, err)
				}
			})
			synctest.Wait()
		}
		for _, k := range made(text, 100) {
			show("198.51.100.1", k, skill.Unauthorized)
		}
		before := h.store.Asked("Key")
		show("192.0.2.1", text, "")
		if n := h.store.Asked("Key"); n != before+1 {
			t.Errorf("%d keys are looked up, %d before: the one from another network waits", n, before)
		}
		release()
		all.Wait()
	})
}

// A row that this program would not write is nobody.
func TestDamagedRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		k, text := h.create(t, 0)
		for name, change := range map[string]func(k *identity.Key){
			"no tenant":        func(k *identity.Key) { k.Tenant = "" },
			"tenant of nobody": func(k *identity.Key) { k.Tenant = "anonymous" },
			"no hash":          func(k *identity.Key) { k.Hash = [32]byte{} },
		} {
			bad := *k
			change(&bad)
			h.store.Put(t, bad)
			time.Sleep(time.Second)
			if p, err := h.Authenticate(t.Context(), bearer(text)); skill.CodeOf(err) != skill.Unauthorized || p.ID != "" {
				t.Errorf("%s: %+v, %v", name, p, err)
			}
		}
		later := *k
		later.Scopes = []string{"skills:read", "of:a:later:release"}
		h.store.Put(t, later)
		time.Sleep(time.Second)
		if p, err := h.Authenticate(t.Context(), bearer(text)); err != nil || cmp.Diff([]string{"skills:read"}, p.Scopes) != "" {
			t.Errorf("a scope that is not known: %+v, %v", p, err)
		}
	})
}

// When a key was last used is written once a minute, and when the host ends.
func TestLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		k, text := h.create(t, 0)
		begun := time.Now()
		for range 300 { // 150 s
			h.is(t, text, true)
			time.Sleep(500 * time.Millisecond)
		}
		if n := h.store.Asked("Touch"); n < 2 || n > 3 {
			t.Errorf("written %d times", n)
		}
		musttest.Do(t, h.Close())
		got, err := h.keys.Get(t.Context(), k.ID)
		if err != nil || got.LastUsedAt.Sub(begun) < 2*time.Minute {
			t.Errorf("%v, %v", got.LastUsedAt.Sub(begun), err)
		}
	})
}

// Whoever tries many credentials fills no disk with lines, but what was left out is
// counted.
func TestManyRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		for range 1000 {
			h.is(t, "osk_", false)
		}
		time.Sleep(time.Second)
		h.is(t, "osk_", false)
		if log := h.log.String(); strings.Count(log, "\n") != 101 || !strings.Contains(log, `"others_since_the_last_line":900}`) {
			t.Errorf("%d lines, the last one %s", strings.Count(log, "\n"), log[max(len(log)-200, 0):])
		}
	})
}

// Principals of one key can be changed without a change of others.
func TestScopesAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openKeys(t)
		_, text := h.create(t, 0)
		c := identity.Credentials{APIKey: []string{text}}
		first := musttest.Get(h.Authenticate(t.Context(), c))(t)
		first.Scopes = append(first.Scopes, skill.ScopeHost)
		second, err := h.Authenticate(t.Context(), c)
		if err != nil || second.May(skill.ScopeHost) || cap(second.Scopes) != len(second.Scopes) {
			t.Errorf("%+v, %v", second, err)
		}
	})
}

func TestAnonymous(t *testing.T) {
	h := open(t, func(o *identity.Options) { o.Anonymous = []string{skill.ScopeRead} })
	p, err := h.Authenticate(t.Context(), identity.Credentials{})
	want := skill.Principal{ID: "anonymous", Type: skill.Anonymous, Tenant: "anonymous", Scopes: []string{skill.ScopeRead}}
	if diff := cmp.Diff(want, p); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, c := range []identity.Credentials{{Query: true}, {Authorization: []string{""}}, bearer("x"), {APIKey: []string{"osk_"}}} {
		if p, err := h.Authenticate(t.Context(), c); skill.CodeOf(err) != skill.Unauthorized || p.ID != "" {
			t.Errorf("%+v: whoever shows what is wrong is not nobody: %+v, %v", c, p, err)
		}
	}
}
