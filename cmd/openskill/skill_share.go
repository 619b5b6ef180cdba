package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"openskill/host/admission"
	"openskill/host/admission/share"
	"openskill/host/app/config"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// sharing is what the commands have that carry skills between machines.
type sharing struct {
	settings  *settingsFlags
	timeout   cliflag.Duration
	plainHTTP bool
	username  string
	password  bool // is read from standard input

	publishes  bool // the keys are those of the skills that go out, and nothing is accepted
	keys       []string
	policyFile string
	unsigned   bool
	downgrade  bool
}

// shareLimit is how long a command may take that speaks with a registry.
const shareLimit = 15 * time.Minute

// bindRemote gives a command the flags of those who speak with registries.
func (o *sharing) bindRemote(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.plainHTTP, "plain-http", false, "connect without TLS, also to other machines")
	f.Var(cliflag.Text(&o.username, "NAME"), "username", "user name; default: from Docker's configuration file")
	f.BoolVar(&o.password, "password-stdin", false, "read the password or token from standard input")
	o.timeout.Value = shareLimit
	f.Var(&o.timeout, "timeout", "time limit in total")
}

// bindPolicy gives a command the flags of those who accept skills.
func (o *sharing) bindPolicy(cmd *cobra.Command, installs bool) {
	f := cmd.Flags()
	f.Var(cliflag.Texts(&o.keys, "KEY"), "key", "accepted public key, or its .pub file; repeatable")
	f.Var(cliflag.Text(&o.policyFile, "FILE"), "policy", "trust policy file; default: OPENSKILL_TRUST_POLICY")
	if installs {
		f.BoolVar(&o.unsigned, "allow-unsigned", false, "accept unsigned skills and signatures by unknown keys")
		f.BoolVar(&o.downgrade, "allow-downgrade", false, "accept a lower version than the installed one")
	}
}

// remote makes what speaks with registries.
func (o *sharing) remote(a *cli) (*share.Remote, error) {
	r := share.RemoteOptions{PlainHTTP: o.plainHTTP, Docker: true, Username: o.username}
	switch {
	case o.password && o.username == "":
		return nil, usage("--password-stdin needs --username")
	case o.username != "" && !o.password:
		return nil, usage("--username needs --password-stdin: a password on the command line could be seen by everybody on this machine")
	case o.password:
		line, err := readLine(a.stdin)
		if err != nil {
			return nil, usage("standard input has no password: %v", err)
		}
		r.Password = line
	}
	return share.NewRemote(r), nil
}

// readLine reads a line of at most 4 KiB.
func readLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 4<<10)).ReadString('\n')
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", firstError(err, errors.New("the line is empty"))
	}
	return line, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return errors.New("nothing is there")
}

// accepts gives whose skills are accepted; nil where the command line and the settings
// say nothing.
func (o *sharing) accepts(a *cli, s *config.Settings) (*share.Policy, error) {
	file := firstOf(o.policyFile, s.TrustPolicy)
	if o.policyFile == "" && (len(o.keys) > 0 || o.unsigned) {
		file = "" // the command line says it
	}
	if file == "" {
		if len(o.keys) == 0 && !o.unsigned {
			return nil, nil
		}
		keys, err := publicKeys(o.keys)
		return share.OfKeys(keys, o.unsigned), err
	}
	if len(o.keys) > 0 || o.unsigned {
		return nil, usage("--policy says whose skills are accepted; leave out --key and --allow-unsigned")
	}
	b, err := readFile(file, share.MaxFile)
	if err != nil {
		return nil, usage("cannot read the trust policy %s: %v", quote(file), plain(err))
	}
	p, problems := share.ParsePolicy(b)
	if len(problems) == 0 {
		return p, nil
	}
	for _, problem := range problems {
		a.say("%s:%s", skill.CleanText(file, 500), skill.CleanText(problem.String(), 500))
	}
	return nil, usage("the trust policy %s has %d problems, so nothing is accepted", quote(file), len(problems))
}

// publicKeys reads keys, each the text itself or the name of a file.
func publicKeys(list []string) ([]share.PublicKey, error) {
	keys := make([]share.PublicKey, 0, len(list))
	for _, text := range list {
		key, err := share.ParsePublic(text)
		if err != nil {
			b, fileErr := readFile(text, share.MaxSignature)
			if fileErr != nil {
				return nil, usage("--key %s is neither a public key, which begins with RW, nor a file: %v", quote(text), plain(fileErr))
			}
			if key, err = share.ParsePublic(string(b)); err != nil {
				return nil, usage("--key %s holds no public key of minisign: %v", quote(text), err)
			}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// carrier makes what packs and unpacks. Modules are checked in this process, which does
// nothing else and ends.
func (a *cli) carrier(ctx context.Context, s *config.Settings) (*share.Carrier, error) {
	admission, err := admissionOf(s)
	if err != nil {
		return nil, err
	}
	c, err := share.New(share.Options{Admission: admission, MaxArchive: s.MaxUpload(), Watch: a.watch(ctx)})
	if err != nil {
		return nil, hostFailed(err)
	}
	return c, nil
}

// longTransfer is the size from which a transfer has a progress bar, in bytes.
const longTransfer = 1 << 20

// watch shows how far large transfers are, where standard error is a terminal.
func (a *cli) watch(ctx context.Context) func(string, int64, io.Reader) io.Reader {
	if f, ok := a.stderr.(*os.File); !ok || !terminal(f) {
		return nil
	}
	return func(what string, size int64, r io.Reader) io.Reader {
		if size < longTransfer {
			return r
		}
		shown := &shown{r: r}
		shown.finish = a.progress(ctx, func() string {
			done := shown.done.Load()
			return fmt.Sprintf("%s %s %.1f of %.1f MB", what, bar(float64(done)/float64(size)), float64(done)/1e6, float64(size)/1e6)
		})
		return shown
	}
}

// shown is a reader with a progress bar, which is gone at its end.
type shown struct {
	r      io.Reader
	done   atomic.Int64
	finish func()
}

func (s *shown) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.done.Add(int64(n))
	if err != nil {
		s.finish()
	}
	return n, err
}

// job is one command that carries skills.
type job struct {
	*share.Carrier
	settings *config.Settings
	accepts  *share.Policy // nil: no trust policy is set
	keys     []share.PublicKey
	remote   *share.Remote
	staging  string // for what is not installed; removed at the end
}

// share runs a command that carries skills, within its time.
func (a *cli) share(cmd *cobra.Command, o *sharing, do func(ctx context.Context, j *job) error) error {
	s, err := a.load(o.settings)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if o.timeout.Value > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout.Value)
		defer cancel()
	}
	j := &job{settings: s}
	if o.publishes {
		j.keys, err = publicKeys(o.keys)
	} else {
		j.accepts, err = o.accepts(a, s)
	}
	if err != nil {
		return err
	}
	if j.remote, err = o.remote(a); err != nil {
		return err
	}
	defer j.remote.Close()
	if j.Carrier, err = a.carrier(ctx, s); err != nil {
		return err
	}
	if j.staging, err = os.MkdirTemp("", "openskill-share-"); err != nil {
		return hostFailed(plain(err))
	}
	defer admission.Discard(j.staging) //nolint:errcheck // the system's folder of temporary files
	return a.shareFailed(do(ctx, j))
}

// shareFailed tells refusals from a wrong command line and from a host that fails.
func (a *cli) shareFailed(err error) error {
	var told *exitError
	var e *skill.Error
	switch {
	case err == nil, errors.As(err, &told):
		return err
	case !errors.As(err, &e):
		return hostFailed(plain(err))
	}
	if r, ok := e.Details["report"].(*admission.Report); ok {
		for i := range r.Refused {
			a.say("%s", skill.CleanText(fmt.Sprintf("%s: %s", r.Refused[i].Code, r.Refused[i].String()), 1000))
		}
	}
	if e.Code == skill.InvalidArgument {
		return &exitError{exitUsage, e}
	}
	if e.Code == skill.Internal {
		return &exitError{exitHost, e}
	}
	return &exitError{exitFailed, &skill.Error{Op: e.Op, Code: e.Code, Message: string(e.Code) + ": " + e.Message, Err: e.Err}}
}

// leftOut says what of a folder does not travel.
func (a *cli) leftOut(list []string) {
	if len(list) > 0 {
		a.say("left out: %s", strings.Join(list, ", "))
	}
}

// keyText is a key for a person: its id.
func keyText(key string) string {
	k, err := share.ParsePublic(key)
	if err != nil {
		return "none"
	}
	return k.ID()
}

// by says who vouches for a skill.
func by(publisher, key string, trust skill.Trust) string {
	switch {
	case key == "":
		return "unsigned, " + trust.String()
	case publisher == "":
		return "signed by key " + keyText(key) + ", " + trust.String()
	}
	return fmt.Sprintf("signed by %s (key %s), %s", publisher, keyText(key), trust)
}
