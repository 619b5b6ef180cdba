// Package config gives the settings of the host, each from the first of these that
// has it: flag, environment, .env, openskill.yaml, default.
//
// The fields of [Settings] are the one table of settings: their tags hold the name
// in the environment, the flag, the default, what is accepted and what it is for,
// and [Table] reads the table for --help and the documents. The key of a setting in
// openskill.yaml is its name in the environment without OPENSKILL_, in lower case.
//
// An empty value counts as not given. Values of .env never enter the environment
// of the process, so that no child inherits them. A setting that exists is a
// setting that something enforces.
package config
