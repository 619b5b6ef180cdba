// Command dist makes what people install of openSkill: for each architecture a tar.gz
// and a package for Debian, the bill of materials beside them, and one list of SHA-256.
//
// The same commit gives the same bytes, in any folder and at any time: all times in the
// archives are SOURCE_DATE_EPOCH, owners and modes are set here, and names are sorted.
//
//	SOURCE_DATE_EPOCH=… dist --repo DIR --to DIR --arch amd64,arm64 --native FILE
//
// It expects the binaries, built by scripts/dist.sh, as build/ARCH/openskill below --to.
// That of --native, of the same commit, makes completions, man pages and the bills of
// materials; one of another architecture, which may not run here, is only read.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	repo := flag.String("repo", ".", "the `folder` of the repository")
	to := flag.String("to", "dist", "the `folder` that is written")
	native := flag.String("native", "", "an openskill of the same commit that runs on this machine")
	arches := flag.String("arch", "amd64", "architectures, with commas between them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *repo, *to, *native, strings.Split(*arches, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, repo, to, native string, arches []string) error {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil || epoch < 0 {
		return errors.New("SOURCE_DATE_EPOCH must be the time of the commit, in seconds")
	}
	at := time.Unix(epoch, 0).UTC()
	out, err := exec.CommandContext(ctx, native, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", native, err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "openskill ")
	var made []string
	for _, arch := range arches {
		name := fmt.Sprintf("openskill-%s-linux-%s", version, arch)
		tree := filepath.Join(to, "build", name)
		if err := stage(ctx, repo, tree, native, filepath.Join(to, "build", arch, "openskill"), arch); err != nil {
			return err
		}
		if err := archive(filepath.Join(to, name+".tar.gz"), tree, name, at); err != nil {
			return err
		}
		bill, err := os.ReadFile(filepath.Join(tree, "openskill.cdx.json"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name+".cdx.json"), bill, 0o644); err != nil {
			return err
		}
		deb := fmt.Sprintf("openskill_%s_%s.deb", version, arch)
		if err := debian(filepath.Join(to, deb), tree, version, arch, at); err != nil {
			return err
		}
		made = append(made, name+".tar.gz", name+".cdx.json", deb)
	}
	return sums(to, made)
}

// stage gathers the files of one architecture in an empty folder.
func stage(ctx context.Context, repo, tree, native, binary, arch string) error {
	if err := os.RemoveAll(tree); err != nil {
		return err
	}
	for _, dir := range []string{"bin", "completions", "man/man1", "debian"} {
		if err := os.MkdirAll(filepath.Join(tree, dir), 0o755); err != nil {
			return err
		}
	}
	for from, name := range map[string]string{
		binary: "bin/openskill", filepath.Join(repo, "README.md"): "README.md",
		filepath.Join(repo, "deploy/openskill.service"): "openskill.service", filepath.Join(repo, "deploy/openskill.yaml"): "openskill.yaml",
		filepath.Join(repo, "deploy/Containerfile"): "Containerfile", filepath.Join(repo, "LICENSE"): "copyright",
		filepath.Join(repo, "deploy/debian/postinst"): "debian/postinst", filepath.Join(repo, "deploy/debian/prerm"): "debian/prerm",
		filepath.Join(repo, "deploy/debian/postrm"): "debian/postrm",
	} {
		if err := copyFile(from, filepath.Join(tree, name)); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(repo, "LICENSE"), filepath.Join(tree, "LICENSE")); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "openskill.bash", "zsh": "_openskill", "fish": "openskill.fish", "powershell": "openskill.ps1"} {
		if err := output(ctx, filepath.Join(tree, "completions", name), native, "completion", shell); err != nil {
			return err
		}
	}
	if out, err := exec.CommandContext(ctx, native, "man", filepath.Join(tree, "man/man1")).CombinedOutput(); err != nil {
		return fmt.Errorf("openskill man: %w: %s", err, out)
	}
	// A binary tells what it is made of to whoever reads it, also on another machine.
	return output(ctx, filepath.Join(tree, "openskill.cdx.json"), native, "version", "--sbom", "--of", binary)
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

func output(ctx context.Context, to, command string, args ...string) error {
	out, err := exec.CommandContext(ctx, command, args...).Output()
	if err != nil {
		return fmt.Errorf("openskill %s: %w", strings.Join(args, " "), err)
	}
	return os.WriteFile(to, out, 0o644)
}

// archive writes a tar.gz of a folder with name as its one folder.
func archive(target, tree, name string, at time.Time) error {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed) // the best level takes four times as long for 0.4 % less
	zip.ModTime = at
	w := tar.NewWriter(zip)
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error { // in the order of names
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if rel == "debian" && d.IsDir() {
			return fs.SkipDir // scripts of the package
		}
		if rel == "copyright" {
			return nil // it is LICENSE
		}
		h := &tar.Header{Name: name, ModTime: at, Mode: 0o755, Typeflag: tar.TypeDir, Format: tar.FormatUSTAR}
		if rel != "." {
			h.Name += "/" + rel
		}
		if d.IsDir() {
			h.Name += "/"
			return w.WriteHeader(h)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		h.Typeflag, h.Size, h.Mode = tar.TypeReg, int64(len(b)), 0o644
		if strings.HasPrefix(rel, "bin/") {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.Copy(w, bytes.NewReader(b))
		return err
	})
	if err := errors.Join(err, w.Close(), zip.Close()); err != nil {
		return err
	}
	return os.WriteFile(target, packed.Bytes(), 0o644)
}

// sums writes SHA256SUMS, which sha256sum -c reads.
func sums(dir string, names []string) error {
	slices.Sort(names)
	var list strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		fmt.Fprintf(&list, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(list.String()), 0o644)
}
