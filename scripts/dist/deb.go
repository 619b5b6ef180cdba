package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// debian writes the package for Debian and what comes of it: what is in tree, a folder
// made by stage, at its places, and a user of its own for the host.
func debian(target, tree, version, arch string, at time.Time) error {
	entry := func(source, destination string, mode os.FileMode, kind string) *files.Content {
		return &files.Content{
			Source: source, Destination: destination, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: at},
		}
	}
	own := func(c *files.Content, owner, group string) *files.Content {
		c.FileInfo.Owner, c.FileInfo.Group = owner, group
		return c
	}
	in := func(parts ...string) string { return filepath.Join(append([]string{tree}, parts...)...) }
	contents := files.Contents{
		entry(in("bin", "openskill"), "/usr/bin/openskill", 0o755, files.TypeFile),
		entry(in("openskill.service"), "/lib/systemd/system/openskill.service", 0o644, files.TypeFile),
		entry(in("copyright"), "/usr/share/doc/openskill/copyright", 0o644, files.TypeFile),
		entry(in("README.md"), "/usr/share/doc/openskill/README.md", 0o644, files.TypeFile),
		entry(in("openskill.cdx.json"), "/usr/share/doc/openskill/openskill.cdx.json", 0o644, files.TypeFile),
		entry(in("completions", "openskill.bash"), "/usr/share/bash-completion/completions/openskill", 0o644, files.TypeFile),
		entry(in("completions", "_openskill"), "/usr/share/zsh/vendor-completions/_openskill", 0o644, files.TypeFile),
		entry(in("completions", "openskill.fish"), "/usr/share/fish/vendor_completions.d/openskill.fish", 0o644, files.TypeFile),
		entry("", "/etc/openskill", 0o755, files.TypeDir),
		// It may hold secrets: the host reads it as its group, and nobody else does. The
		// script after the installation gives it that group, which there is not before.
		entry(in("openskill.yaml"), "/etc/openskill/openskill.yaml", 0o640, files.TypeConfigNoReplace),
		entry("", "/etc/openskill/skills", 0o755, files.TypeDir),
		own(entry("", "/var/lib/openskill", 0o700, files.TypeDir), "root", "root"),
	}
	pages, err := filepath.Glob(in("man", "man1", "*"))
	if err != nil || len(pages) == 0 {
		return fmt.Errorf("there are no man pages in %s", tree)
	}
	for _, page := range pages {
		contents = append(contents, entry(page, "/usr/share/man/man1/"+filepath.Base(page), 0o644, files.TypeFile))
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "openskill", Arch: arch, Platform: "linux", Version: version, VersionSchema: "none",
		Section: "net", Priority: "optional", Maintainer: "openSkill <openskill@localhost>", MTime: at,
		Description: "runs the skills of AI agents in sandboxes\n openSkill runs skills, written by strangers, in a WebAssembly sandbox, each call\n in an instance of its own, within limits that are enforced and reported.",
		License:     "see /usr/share/doc/openskill/copyright",
		Overridables: nfpm.Overridables{
			Contents: contents, Depends: []string{"adduser"}, Recommends: []string{"ca-certificates"}, Suggests: []string{"python3"},
			Scripts: nfpm.Scripts{PostInstall: in("debian", "postinst"), PreRemove: in("debian", "prerm"), PostRemove: in("debian", "postrm")},
			Deb:     nfpm.Deb{Compression: "gzip"},
		},
	})
	f, err := os.Create(target)
	if err != nil {
		return err
	}
	if err := deb.Default.Package(info, f); err != nil {
		_ = f.Close()
		return fmt.Errorf("%s: %w", filepath.Base(target), err)
	}
	return f.Close()
}
