//go:build !unix

package main

import "openskill/host/app/config"

// ownState is of Unix.
func ownState(*config.Settings) error { return nil }
