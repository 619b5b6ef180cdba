package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"openskill/host/app/config"
	"openskill/sdk/skill"
)

func (a *cli) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show the effective settings and their sources",
		Example: "  openskill config print\n  openskill config sample",
	}
	group(cmd)
	cmd.AddCommand(a.configPrintCommand(), a.configSampleCommand())
	return cmd
}

// settingRow is a setting in JSON.
type settingRow struct {
	Name    string        `json:"name"`
	Key     string        `json:"key"` // in openskill.yaml
	Flag    string        `json:"flag,omitempty"`
	Value   string        `json:"value"` // "set" of a secret
	Secret  bool          `json:"secret"`
	Source  config.Source `json:"source"`
	Where   string        `json:"where"`
	Reloads bool          `json:"reloads"`
}

// settingsReport is all settings in JSON.
type settingsReport struct {
	Settings []settingRow `json:"settings"`
	Unknown  []string     `json:"unknown"` // names that no setting has: perhaps misspelt
}

func reportSettings(s *config.Settings) settingsReport {
	r := settingsReport{Settings: []settingRow{}, Unknown: []string{}}
	for _, row := range s.Show() {
		r.Settings = append(r.Settings, settingRow{
			Name: row.Env, Key: row.Key, Flag: row.Flag, Value: row.Value, Secret: row.Secret, Source: row.Source,
			Where: skill.CleanText(row.Where, 400), Reloads: row.Reloads,
		})
	}
	for _, name := range s.Unknown() {
		r.Unknown = append(r.Unknown, skill.CleanText(name, 200))
	}
	return r
}

func (a *cli) configPrintCommand() *cobra.Command {
	var asJSON, changed bool
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the effective settings and their sources",
		Long: `Print the effective value of every setting and its source, as a host started here would
use it. Secrets are shown only as set. The exit code is 2 if a setting is invalid; every
invalid one is named.`,
		Example: "  openskill config print --changed\n  openskill config print --json",
		Args:    takes(0, 0),
	}
	flags := bindSettings(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&changed, "changed", false, "only settings that differ from their defaults")
	cmd.RunE = func(*cobra.Command, []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		warnings(s, a.logger(slog.LevelInfo))
		r := reportSettings(s)
		if changed {
			kept := []settingRow{}
			for _, row := range r.Settings {
				if row.Source != config.FromDefault {
					kept = append(kept, row)
				}
			}
			r.Settings = kept
		}
		if asJSON {
			return a.printJSON(r)
		}
		if len(r.Settings) == 0 {
			return a.print("all settings have their defaults\n")
		}
		t := newTable("SETTING", "VALUE", "FROM")
		t.wrap(2, 90)
		for _, row := range r.Settings {
			value := skill.CleanText(row.Value, 1000)
			if value == "" {
				value = "-"
			}
			t.row(row.Name, value, strings.TrimPrefix(row.Where, "the "))
		}
		return a.print("%s\n", t.String())
	}
	return cmd
}

func (a *cli) configSampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "sample",
		Short:   "Print an openskill.yaml with all settings and their defaults, commented out",
		Example: "  openskill config sample > openskill.yaml",
		Args:    takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if _, err := a.stdout.Write(config.Sample()); err != nil {
				return hostFailed(fmt.Errorf("cannot write the sample: %w", err))
			}
			return nil
		},
	}
}
