package python

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
)

func testdata(t *testing.T, name string) string {
	t.Helper()
	b := musttest.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	return string(b)
}

// TestDatesLikeGlibc: dates in generated formats are those of CPython on Linux.
func TestDatesLikeGlibc(t *testing.T) {
	oneGuest(t)
	want := strings.Split(testdata(t, "dates.txt"), "\n")
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		reply, err := runnertest.Do(t.Context(), r, script(t, testdata(t, "dates.py")))
		if err != nil || reply.Code != "" || reply.ExitCode != 0 {
			t.Fatalf("%+v, %v", reply, err)
		}
		got := strings.Split(string(reply.Stdout), "\n")
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		wrong := 0
		for i := range want {
			if got[i] != want[i] && wrong < 20 {
				wrong++
				t.Errorf("%s\nwant %s", got[i], want[i])
			}
		}
	})
}

// TestLibraryLikeGlibc: what else the C library of WASI did silently otherwise. The values
// are those of CPython on Linux with no locale but C.
func TestLibraryLikeGlibc(t *testing.T) {
	oneGuest(t)
	const text = `
import calendar, email.utils, locale, time
def said(call):
    try: return call()
    except Exception as error: return f"{type(error).__name__}: {error}"
print(said(lambda: locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")))
print(said(lambda: locale.setlocale(locale.LC_TIME, ("en_US", "UTF-8"))))
print(said(lambda: calendar.LocaleTextCalendar(locale="fr_FR").formatmonth(2026, 3)))
print(locale.setlocale(locale.LC_ALL, ""), locale.setlocale(locale.LC_NUMERIC), locale.getlocale())
print(locale.setlocale(locale.LC_ALL, "POSIX"), locale.setlocale(locale.LC_TIME, "C.UTF-8"), locale.setlocale(locale.LC_CTYPE))
both = locale.setlocale(locale.LC_ALL)
print(both, locale.setlocale(locale.LC_ALL, "C"), locale.setlocale(locale.LC_ALL, both) == both)
print(time.strftime("%a, %d %b %Y %T %Z", time.gmtime(0)), time.gmtime(0).tm_zone, time.gmtime(0).tm_gmtoff, time.localtime(0).tm_zone)
print(time.mktime((2026, 7, 1, 0, 0, 0, 0, 0, 1)) - time.mktime((2026, 7, 1, 0, 0, 0, 0, 0, 0)))
print(said(lambda: time.strftime("%k", (2026, 13) + (1,) * 7)), said(lambda: time.strftime(5)), said(lambda: time.strftime("%k", 5)))
class Log: converter = time.gmtime; form = time.strftime
print(Log().converter(0)[:3], Log().form("%P", (2026,) + (1,) * 8))
`
	//nolint:dupword // values
	const want = `Error: unsupported locale setting
Error: unsupported locale setting
Error: unsupported locale setting
C.UTF-8 C.UTF-8 ('C', 'UTF-8')
C C.UTF-8 C
LC_CTYPE=C;LC_NUMERIC=C;LC_TIME=C.UTF-8;LC_COLLATE=C;LC_MONETARY=C;LC_MESSAGES=C C True
Thu, 01 Jan 1970 00:00:00 GMT GMT 0 UTC
-3600.0
ValueError: month out of range TypeError: strftime() argument 1 must be str, not int TypeError: Tuple or struct_time argument required
(1970, 1, 1) am
`
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		reply, err := runnertest.Do(t.Context(), r, script(t, text))
		if err != nil || string(reply.Stdout) != want {
			t.Errorf("%v\n%s\n%s", err, reply.Stdout, reply.Stderr)
		}
	})
}
