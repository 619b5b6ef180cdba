package allow

import (
	"crypto/rand"
	"strings"
)

// kinds are how keys of well-known services begin. Scripts check these.
var kinds = [...]string{
	"sk-ant-api03-", "sk-ant-", "sk-proj-", "sk-or-v1-", "sk-", "github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "glpat-",
	"xoxb-", "xoxp-", "xapp-1-", "hf_", "gsk_", "tvly-", "r8_", "ntn_", "secret_", "sk_live_", "sk_test_", "pk_live_", "pk_test_",
	"rk_live_", "whsec_", "SG.", "AIza", "AKIA", "lin_api_", "npm_", "pypi-",
}

// The lengths of placeholders, in bytes, without the beginning.
const (
	fewest = 24 // 120 bits
	most   = 64
	usual  = 32
)

// Placeholder makes what scripts have in place of a value: random letters and digits, after the
// beginning that keys of the value's kind have (sk-, ghp_ …), and of the value's length where that
// is 24 to 64 bytes. So it passes checks of form, and no encoding of requests changes it. It tells
// kind and length of the value, and nothing else.
func Placeholder(value string) string {
	begin := ""
	for _, k := range kinds {
		if strings.HasPrefix(value, k) {
			begin = k
			break
		}
	}
	n := len(value) - len(begin)
	if n < fewest || len(value) > most {
		n = usual
	}
	for out := begin; ; {
		more := rand.Text()
		if more = more[:min(n, len(more))]; n == len(more) {
			return out + more
		}
		out, n = out+more, n-len(more)
	}
}
