package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"openskill/host/admission/share"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// newKey is what skill keygen prints with --json.
type newKey struct {
	Key       string `json:"key"` // the public key
	KeyID     string `json:"key_id"`
	Private   string `json:"private"` // files
	Public    string `json:"public"`
	Encrypted bool   `json:"encrypted"`
}

// password says where the password of a private key comes from.
type password struct {
	file string
	none bool
}

func (p *password) bind(cmd *cobra.Command) {
	cmd.Flags().Var(cliflag.Text(&p.file, "FILE"), "password-file", "file whose first line is the password; default: prompt on the terminal")
}

// read gives the password.
func (p *password) read(a *cli, ask string) (string, error) {
	if p.file != "" {
		f, _, err := openRegular(p.file)
		if err != nil {
			return "", usage("--password-file %s cannot be read: %v", quote(p.file), plain(err))
		}
		defer f.Close()
		line, err := readLine(f)
		if err != nil {
			return "", usage("--password-file %s: %v", quote(p.file), err)
		}
		return line, nil
	}
	in, ok := a.stdin.(*os.File)
	if !ok || !terminal(in) {
		return "", usage("the key needs a password, and there is no terminal to ask for it: use --password-file")
	}
	_, _ = a.stderr.Write([]byte(ask)) // a question that is not seen is not answered
	back := noEcho(in)
	line, err := readLine(in)
	back()
	a.say("")
	if err != nil {
		return "", usage("no password: %v", err)
	}
	return line, nil
}

func (a *cli) skillKeygenCommand() *cobra.Command {
	var p password
	var asJSON bool
	out := "openskill.key"
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Generate a signing key pair",
		Long: `Generate a minisign key pair: the private key in the file --out, for you alone, and the
public key beside it with .pub, for those who verify your skills. Existing files are
never replaced.

The private key is encrypted with a password, which takes some seconds and 1 GiB of
memory. With --no-password, anyone who can read the file can sign as you.`,
		Example: "  openskill skill keygen --out acme.key\n  openskill skill keygen --out ci.key --no-password",
		Args:    takes(0, 0),
	}
	p.bind(cmd)
	f := cmd.Flags()
	f.Var(cliflag.Text(&out, "FILE"), "out", "private key file; the public key file has .pub appended")
	f.BoolVar(&p.none, "no-password", false, "do not encrypt the private key")
	f.BoolVar(&asJSON, "json", false, `print {"key": …, "key_id": …, "private": …, "public": …, "encrypted": …}`)
	cmd.RunE = func(_ *cobra.Command, _ []string) error {
		if p.none && p.file != "" {
			return usage("--no-password and --password-file exclude each other")
		}
		for _, name := range []string{out, out + ".pub"} {
			if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
				return usage("%s exists; nothing was changed", quote(name))
			}
		}
		made, err := a.keygen(out, &p)
		switch {
		case err != nil:
			return err
		case asJSON:
			return a.printJSON(made)
		case !made.Encrypted:
			a.say("the private key is not encrypted: whoever reads %s can sign as you", quote(out))
		}
		return a.print("%s  private\n%s  public: %s\n", made.Private, made.Public, made.Key)
	}
	return cmd
}

func (a *cli) keygen(out string, p *password) (*newKey, error) {
	word := ""
	if !p.none {
		var err error
		if word, err = p.read(a, "password for the new key: "); err != nil {
			return nil, err
		}
		if p.file == "" {
			again, err := p.read(a, "the same again: ")
			if err != nil {
				return nil, err
			}
			if again != word {
				return nil, usage("the two passwords differ")
			}
		}
	}
	key, err := share.GenerateKey()
	if err != nil {
		return nil, hostFailed(err)
	}
	private, err := key.File(word)
	if err != nil {
		return nil, hostFailed(err)
	}
	public, err := key.Public().File()
	if err != nil {
		return nil, hostFailed(err)
	}
	if err := writeNew(out, private, 0o600); err != nil {
		return nil, err
	}
	if err := writeNew(out+".pub", public, 0o644); err != nil {
		return nil, errors.Join(err, os.Remove(out))
	}
	return &newKey{Key: key.Public().String(), KeyID: key.Public().ID(), Private: out, Public: out + ".pub", Encrypted: word != ""}, nil
}

// writeNew makes a file where none is.
func writeNew(name string, b []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return hostFailed(plain(err))
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return hostFailed(errors.Join(plain(err), os.Remove(name)))
	}
	return nil
}

// signed is what skill sign and skill verify print with --json.
type signed struct {
	SkillID   skill.ID `json:"skill_id"`
	Version   string   `json:"version"`
	Digest    string   `json:"digest"` // of the files that travel
	Signed    bool     `json:"signed"`
	Publisher string   `json:"publisher"` // "" where no policy names one
	Key       string   `json:"key"`       // the public key
	KeyID     string   `json:"key_id"`
	Trust     string   `json:"trust,omitempty"`
	Signature string   `json:"signature"` // the file
	LeftOut   []string `json:"left_out"`  // what of the folder does not travel, and is not signed
}

func (a *cli) skillSignCommand() *cobra.Command {
	var p password
	var asJSON bool
	var keyFile string
	o := &sharing{}
	cmd := &cobra.Command{
		Use:   "sign FOLDER --key FILE",
		Short: "Sign the skill in a folder",
		Long: `Sign the id, version and digest of the skill in FOLDER. The signature is written beside
the folder, as FOLDER.minisig, and published by skill push and skill export. Sign again
after each change.

Hidden files, target, node_modules, __pycache__ and .pyc files are neither published nor
signed.`,
		Example: "  openskill skill sign ./greeter --key acme.key",
		Args:    takes(1, 1),
	}
	o.settings = bindSettings(cmd, "state")
	p.bind(cmd)
	f := cmd.Flags()
	f.Var(cliflag.Text(&keyFile, "FILE"), "key", "private key file of openskill skill keygen or minisign -G")
	f.BoolVar(&asJSON, "json", false, `print {"skill_id": …, "version": …, "digest": …, "key": …, "signature": …, "left_out": […]}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if keyFile == "" {
			return usage("--key is missing: the private key of openskill skill keygen")
		}
		return a.share(cmd, o, func(ctx context.Context, j *job) error {
			made, err := a.sign(ctx, j, args[0], keyFile, &p)
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printJSON(made)
			}
			a.leftOut(made.LeftOut)
			return a.print("%s  %s %s %s  by key %s\n", made.Signature, made.SkillID, made.Version, made.Digest, made.KeyID)
		})
	}
	return cmd
}

func (a *cli) sign(ctx context.Context, j *job, folder, keyFile string, p *password) (*signed, error) {
	text, err := readFile(keyFile, share.MaxSignature)
	if err != nil {
		return nil, usage("--key %s cannot be read: %v", quote(keyFile), plain(err))
	}
	if err := a.travels(folder); err != nil {
		return nil, err
	}
	parcel, err := j.PackFiles(ctx, folder, j.staging)
	if err != nil {
		return nil, err
	}
	key, err := share.ReadPrivate(text, func() (string, error) { return p.read(a, "password of the key: ") })
	if err != nil {
		if _, ok := errors.AsType[*exitError](err); ok {
			return nil, err
		}
		return nil, usage("--key %s: %v", quote(keyFile), err)
	}
	sig, err := share.Sign(key, parcel.Statement)
	if err != nil {
		return nil, hostFailed(err)
	}
	file, err := share.SignatureFile(folder)
	if err != nil {
		return nil, hostFailed(err)
	}
	if err := place(sig, file, 0o644); err != nil {
		return nil, err
	}
	return &signed{
		SkillID: parcel.ID, Version: parcel.Version, Digest: parcel.Digest, Signed: true, Key: key.Public().String(), KeyID: key.Public().ID(),
		Signature: filepath.Clean(folder) + share.SignatureExt, LeftOut: nonNil(parcel.LeftOut),
	}, nil
}

// nonNil is a list that is [] in JSON, and not null.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (a *cli) skillVerifyCommand() *cobra.Command {
	var asJSON bool
	o := &sharing{}
	cmd := &cobra.Command{
		Use:   "verify FOLDER",
		Short: "Verify the signature of the skill in a folder",
		Long: `Verify the signature FOLDER.minisig over the current files of FOLDER, by the keys of
--key or of a trust policy, and print signer and contents. The exit code is 1 if no
accepted key signed them, or if anything has changed since.`,
		Example: "  openskill skill verify ./greeter --key acme.pub\n  openskill skill verify ./skills/greeter --policy trust.yaml",
		Args:    takes(1, 1),
	}
	o.settings = bindSettings(cmd, "state")
	o.bindPolicy(cmd, false)
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"skill_id": …, "version": …, "digest": …, "publisher": …, "key": …, "trust": …, "left_out": […]}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.share(cmd, o, func(ctx context.Context, j *job) error {
			if j.accepts == nil {
				return usage("say whose signature is accepted: --key or --policy")
			}
			found, err := j.Verify(ctx, args[0], j.staging, j.accepts)
			if err != nil {
				return err
			}
			if asJSON {
				out := signed{
					SkillID: found.ID, Version: found.Version, Digest: found.Digest, Signed: found.Signed, Publisher: found.Publisher, Key: found.Key,
					Trust: found.Trust.String(), Signature: filepath.Clean(args[0]) + share.SignatureExt, LeftOut: nonNil(found.LeftOut),
				}
				if found.Signed {
					out.KeyID = keyText(found.Key)
				}
				return a.printJSON(out)
			}
			a.leftOut(found.LeftOut)
			return a.print("%s %s %s  %s\n", found.ID, found.Version, found.Digest, by(found.Publisher, found.Key, found.Trust))
		})
	}
	return cmd
}
