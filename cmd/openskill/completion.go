package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"openskill/host/app"
	"openskill/host/app/config"
)

func (a *cli) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for a shell",
		Long: `Print a completion script. Packages install it; elsewhere load it when the shell starts:
source <(openskill completion bash), or save it in the shell's folder of completions.`,
		Example:   "  openskill completion bash > openskill.bash",
		Args:      takes(1, 1),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				err = root.GenZshCompletion(a.stdout)
			case "fish":
				err = root.GenFishCompletion(a.stdout, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(a.stdout)
			default:
				return usage("unsupported shell %s: use bash, zsh, fish or powershell", quote(args[0]))
			}
			if err != nil {
				return hostFailed(err)
			}
			return nil
		},
	}
}

// mostOffered is how many skills a shell is offered.
const mostOffered = 200

// completeSkills has a shell offer the ids of skills for a command's first argument. It
// reads the folders of the settings and says nothing where they are wrong: who types a
// command is told by the command.
func (a *cli) completeSkills(flags *settingsFlags) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		s, err := a.load(flags)
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return skillIDs(s, typed), cobra.ShellCompDirectiveDefault // a folder is accepted too
	}
}

func skillIDs(s *config.Settings, typed string) (ids []string) {
	r, err := app.Catalogue(s, app.Roots(s, nil))
	if err != nil {
		return nil
	}
	for _, id := range r.IDs() {
		if strings.HasPrefix(string(id), typed) && len(ids) < mostOffered {
			ids = append(ids, string(id))
		}
	}
	return ids
}

func (a *cli) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a manual page for each command to a folder",
		Long:    "Write the help texts as manual pages of section 1. Packages include them.",
		Example: "  openskill man /usr/local/share/man/man1",
		Args:    takes(1, 1),
		Hidden:  true, // for those who make packages
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // it would have the time of the build
			header := &doc.GenManHeader{Title: "OPENSKILL", Section: "1", Source: "openskill " + app.Version, Manual: "openSkill"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return hostFailed(err)
			}
			return nil
		},
	}
}
