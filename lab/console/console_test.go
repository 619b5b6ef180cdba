package console

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"openskill/host/app/hosttest"
	"openskill/sdk/skill"
)

// browser is a Chromium with one page, and what it did that it should not.
type browser struct {
	t    *testing.T
	ctx  context.Context
	url  string
	dir  string // of pictures; "": none are made
	mu   sync.Mutex
	seen []string // requests and messages
}

// openBrowser starts one, or skips the test where there is none.
func openBrowser(t *testing.T, url string) *browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium here; make chromium says how to get one")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.WindowSize(1180, 900),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE 127.0.0.2"), // nothing else is there
		chromedp.WSURLReadTimeout(time.Minute),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it has none as root
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, url: url, dir: os.Getenv("OPENSKILL_SCREENSHOTS")}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if to := e.Request.URL; !strings.HasPrefix(to, url+"/") && !strings.HasPrefix(to, "data:") {
				b.note("a request to " + to)
			}
		case *cdplog.EventEntryAdded:
			if e.Entry.Source == cdplog.EntrySourceSecurity || e.Entry.Source == cdplog.EntrySourceJavascript || strings.Contains(e.Entry.Text, "Content Security Policy") {
				b.note(e.Entry.Text)
			}
		case *page.EventJavascriptDialogOpening:
			go func() { // what was asked is meant
				_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
			}()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, text)
}

// run does something, within a minute.
func (b *browser) run(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.gaveUp(what, err)
	}
}

// gaveUp fails the test with what is on the page.
func (b *browser) gaveUp(what string, err error) {
	b.t.Helper()
	at, _ := chromedp.Run(b.ctx, chromedp.Location())
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
	b.t.Fatalf("%s: %v; the page is %s:\n%.2000s", what, err, at, text)
}

func (b *browser) open(path string) {
	b.t.Helper()
	b.run("open "+path, chromedp.Navigate(b.url+path), chromedp.WaitVisible(chromedp.CSS("main")))
}

// waits until an element with a text is there, on this page or one that comes after it.
func (b *browser) waits(selector, text string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	look := chromedp.Evaluate[bool](fmt.Sprintf(`[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))`, selector, text))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		there, err := chromedp.Run(ctx, look) // fails while a page goes and the next one comes
		if there {
			return
		}
		select {
		case <-ctx.Done():
			b.gaveUp(fmt.Sprintf("wait for %q in %s", text, selector), err)
		case <-tick.C:
		}
	}
}

// presses a button by its words.
func (b *browser) presses(words string) {
	b.t.Helper()
	b.run("press "+words, chromedp.Click(fmt.Sprintf(`//main//button[normalize-space()=%q]`, words)))
}

func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.run("fill "+selector, chromedp.SetValue(chromedp.CSS(selector), text))
}

// shows makes a picture of a page, for docs/console.md.
func (b *browser) shows(name string) {
	b.t.Helper()
	if b.dir == "" {
		return
	}
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.activeElement.blur(), window.scrollTo(0, 0), true`)); err != nil {
		b.gaveUp("picture "+name, err)
	}
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.gaveUp("picture "+name, err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, name+".png"), small(b.t, shot), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// small writes a picture with the colors that it has most of, which for pages is as good and
// a third of the size.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	r := img.Bounds()
	n := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			n[at(x, y)]++
		}
	}
	var all []color.RGBA
	for c := range n {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int { return n[b] - n[a] })
	var palette color.Palette
	for _, c := range all[:min(len(all), 256)] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(r, palette)
	index := map[color.RGBA]uint8{}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := at(x, y)
			i, known := index[c]
			if !known {
				i = uint8(palette.Index(c))
				index[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (b *browser) looks(wide, high int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
		b.gaveUp("look", err)
	}
	b.run("look", chromedp.EmulateViewport(wide, high))
}

// greeter is a skill whose input has a field of each kind.
func greeter(t *testing.T, version string) []byte {
	t.Helper()
	return zipped(t, map[string]string{
		"skill.yaml": `id: greeter
version: ` + version + `
description: Says a greeting in a tone of your choice, as often as you like.
` + wasiEntry + `input_schema:
  type: object
  properties:
    name: {type: string, description: Who is greeted., minLength: 1, maxLength: 60}
    tone: {type: string, enum: [warm, formal], default: warm, description: How it sounds.}
    times: {type: integer, minimum: 1, maximum: 5, default: 1}
    shout: {type: boolean, description: In capitals.}
    also: {type: array, items: {type: string}, description: Others who are meant.}
  required: [name]
output_schema: {type: object}
`,
		"m.wasm": string(says(`{"greeting": "Good morning, Ann, from ` + version + `."}`)),
	})
}

// TestConsoleInABrowser goes through the console as an operator does: what is shown comes of
// this host alone, and nothing on a page breaks the policy of its content. With
// OPENSKILL_SCREENSHOTS it makes the pictures of docs/console.md, with the skills of this
// repository.
func TestConsoleInABrowser(t *testing.T) {
	hosttest.NoRace(t)
	if testing.Short() {
		t.Skip("a browser takes its time")
	}
	flags := map[string]string{"auth": "required", "script-approval": "version", "audit-payload": "full", "agent-provider": "rules", "record": "on"}
	pictures := os.Getenv("OPENSKILL_SCREENSHOTS") != ""
	if pictures {
		for flag, path := range map[string]string{"skills": "../../skills", "data": "../../data"} {
			abs, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			flags[flag] = abs
		}
		if err := os.MkdirAll(os.Getenv("OPENSKILL_SCREENSHOTS"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	v := prepare(t, flags)
	if pictures {
		hosttest.Runtimes(t, "../..", v.settings.StateDir)
	} else {
		v.write(t, map[string]string{
			"unit-converter/SKILL.md":           "---\nname: unit-converter\ndescription: Asks.\n---\nRun *it*.\n",
			"unit-converter/scripts/convert.py": "print(1)\n",
			"echo/skill.yaml":                   echo("echo"),
			"echo/m.wasm":                       string(says(`{"echoed": "hello"}`)),
		})
	}
	keys, made := v.keysOf(t, map[string][]string{
		"operator": skill.Scopes(),
		"agent":    {skill.ScopeRead, skill.ScopeInvoke, skill.ScopeExecutions, skill.ScopeAgent},
	})
	v.start(t, flags)
	agent := asks{v, made["agent"].text}
	b := openBrowser(t, v.url)

	// Who has no key does not get in, and is told so.
	b.looks(1180, 760, false)
	b.open("/console/skills")
	b.waits("h1", "Sign in")
	b.shows("signin")
	b.fill("#credential", "osk_wrong")
	b.presses("Sign in")
	b.waits(".problem", "Invalid API key")
	b.fill("#credential", made["operator"].text)
	b.presses("Sign in")
	b.waits("h1", "Skills") // where it was asked for

	// Two versions of a skill.
	for _, version := range []string{"1.0.0", "1.1.0"} {
		file := filepath.Join(t.TempDir(), "greeter.zip")
		if err := os.WriteFile(file, greeter(t, version), 0o600); err != nil {
			t.Fatal(err)
		}
		b.open("/console/upload")
		b.run("choose", chromedp.SetUploadFiles(chromedp.CSS("#archive"), []string{file}),
			chromedp.Click(`//form[.//input[@id="archive"]]//input[@name="enable"]`),
			chromedp.Click(`//form[.//input[@id="archive"]]//button`))
		b.waits(".note.good", version+" is there, and enabled")
	}
	b.shows("upload")
	file := filepath.Join(t.TempDir(), "bad.zip")
	if err := os.WriteFile(file, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.open("/console/upload")
	b.run("choose", chromedp.SetUploadFiles(chromedp.CSS("#archive"), []string{file}), chromedp.Click(`//form[.//input[@id="archive"]]//button`))
	b.waits(".problem", "Refused")

	// What was found in a version can be read again.
	b.open("/console/skills/greeter/versions/1.0.0")
	b.waits("#found", "Admission report")
	b.waits(".reasons code", "wasi_snapshot_preview1")
	b.shows("version")

	// It is tried by its form; what is wrong is said at its field.
	b.open("/console/skills")
	b.waits("#skills h2", "greeter")
	b.shows("skills")
	b.looks(390, 844, false)
	b.open("/console/skills")
	b.shows("skills-phone")
	b.looks(1180, 900, false)
	b.open("/console/skills/greeter")
	b.fill(`[name="in.0"]`, "Ann")
	b.fill(`[name="in.2"]`, "many")
	b.presses("Run")
	b.waits(".field .problem", "Enter a number")
	b.fill(`[name="in.2"]`, "2")
	b.presses("Run")
	b.waits(".result pre", "from 1.1.0")
	b.shows("skill")
	b.looks(1180, 900, true)
	b.shows("skill-dark")
	b.looks(1180, 760, false)

	// Another one's call appears in an open page.
	b.open("/console/executions")
	b.waits("#live-state", "appear here")
	ended := agent.want(t, "/skills/greeter:invoke", `{"input": {"name": "Bob"}}`).Meta.ExecutionID
	b.waits(fmt.Sprintf("tr[data-id=%q].new", ended), "greeter")
	if pictures {
		for range 3 {
			agent.want(t, "/skills/echo:invoke", `{"input": {"text": "hello"}}`)
			agent.want(t, "/skills/calculator:invoke", `{"input": {"numbers": [3, 5, 10], "ops": ["mean"]}}`)
		}
		agent.ask(t, "/skills/calculator:invoke", `{"input": {"operation": "nothing"}}`)
		b.open("/console/executions")
	}
	b.shows("executions")
	b.open("/console/executions/" + ended)
	b.waits(".timeline", "called greeter")
	b.presses("Replay")
	b.waits("#replayed ~ p", "identical")
	b.shows("execution")
	b.open("/console/executions")
	b.presses("Check the chain of records")
	b.waits(".note.good", "is whole")

	// Decisions.
	b.open("/console/skills/greeter")
	b.presses("Disable")
	b.waits(".note.good", "can no longer be called")
	if status, text := agent.ask(t, "/skills/greeter:invoke", `{"input": {"name": "Bob"}}`); status == 200 {
		t.Errorf("it is called all the same: %s", text)
	}
	b.run("enable", chromedp.Click(`//section[@aria-labelledby="decide"]//button[normalize-space()="Enable"]`))
	b.waits(".note.good", "can be called now")
	b.presses("Roll back")
	b.waits(".note.good", "1.0.0 is current again")

	// Chat, by rules.
	b.open("/console/chat")
	b.fill("#message", "echo: hello")
	b.presses("Send")
	b.waits(".tool summary", "answered")
	b.waits(".message.agents", "hello")
	b.shows("chat")

	// A script of another one waits for an answer.
	if status, text := agent.ask(t, "/agent-skills/unit-converter/scripts/convert.py:run", `{"args": ["--value", "26.2", "--factor", "1.60934"]}`); status != 403 {
		t.Fatalf("the script did not ask: %d %s", status, text)
	}
	b.open("/console/approvals")
	b.waits(".card", "convert.py")
	b.shows("approvals")
	b.presses("Approve")
	b.waits(".note.good", "approved")
	b.open("/console/agent-skills")
	b.waits(".card", "unit-converter")
	b.shows("agent-skills")
	b.open("/console/agent-skills/unit-converter")
	b.waits("#run", "Run a script")
	b.shows("agent-skill")

	// Keys, and figures.
	b.open("/console/keys")
	b.fill("#name", "night shift")
	b.fill("#tenant", "acme")
	b.run("scope", chromedp.Click(chromedp.CSS(`input[name="scope"][value="skills:read"]`)))
	b.shows("keys")
	b.presses("Create key")
	b.waits("#new-key", "osk_")
	b.open("/console/settings")
	b.waits("table", "OPENSKILL_AUTH")
	b.shows("settings")
	b.looks(1180, 900, false)
	b.open("/console/overview")
	b.waits(".figures", "Calls")
	if _, err := os.Stat("console/assets/uPlot.iife.min.js"); err == nil {
		b.waits(".u-legend", "failed")
	}
	b.shows("overview")
	b.looks(1180, 900, true)
	b.open("/console/overview")
	b.shows("overview-dark")
	b.looks(390, 844, true)
	b.open("/console/overview")
	b.shows("overview-phone")
	b.looks(1180, 900, false)

	// Who signs out is out, and so is whose key is revoked.
	b.run("sign out", chromedp.Click(`//header//button[normalize-space()="Sign out"]`))
	b.waits("h1", "Sign in")
	b.open("/console/skills")
	b.waits("h1", "Sign in")
	b.fill("#credential", made["operator"].text)
	b.presses("Sign in")
	b.waits("h1", "Skills")
	b.open("/console/executions")
	b.waits("#live-state", "appear here")
	if _, err := keys.Revoke(t.Context(), made["operator"].id); err != nil {
		t.Fatal(err)
	}
	b.waits("#live-state", "The live view ended")
	b.open("/console/executions")
	b.waits("h1", "Sign in")

	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.seen {
		t.Errorf("the browser tells of %s", text)
	}
}
