package share

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

var (
	sha256Digest  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	threeNumbers  = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+`)
	errPlainHTTP  = errors.New("the server redirects to an address without TLS")
	errTooMany    = errors.New("too many redirects of the server")
	errEnough     = errors.New("enough")
	errNotAllowed = errors.New("the server redirects to another host")
)

// Version reports whether s is a semantic version, as manifests have them.
func Version(s string) bool {
	return len(s) <= 64 && threeNumbers.MatchString(s) && semver.IsValid("v"+s)
}

// Compare orders semantic versions. What is behind a plus does not count.
func Compare(a, b string) int { return semver.Compare("v"+a, "v"+b) }

// malformed is an artifact that is not what it should be.
func malformed(format string, args ...any) error {
	return &skill.Error{Op: "share.Fetch", Code: skill.ArchiveRejected, Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage)}
}

func invalid(op, format string, args ...any) error {
	return &skill.Error{Op: op, Code: skill.InvalidArgument, Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage)}
}

func conflict(op, format string, args ...any) error {
	return &skill.Error{Op: op, Code: skill.Conflict, Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage)}
}

// The keys of manifests and indexes (OCI image-spec 1.1).
var (
	manifestKeys = []string{"schemaVersion", "mediaType", "artifactType", "config", "layers", "annotations", "subject"}
	indexKeys    = []string{"schemaVersion", "mediaType", "artifactType", "manifests", "annotations", "subject"}
)

// plainJSON refuses keys that are there twice, of which other readers take another one,
// and those that this one would take for others of the same letters.
func plainJSON(b []byte, known []string) error {
	return strictjson.Object(b, func(key, _ []byte) error {
		if !slices.Contains(known, string(key)) {
			return fmt.Errorf("unknown key %q", skill.CleanText(string(key), 60))
		}
		return nil
	})
}

// told makes an error of the network or a registry one for people. It says nothing that
// could be a secret: addresses that registries lead to have tokens in them.
func told(ctx context.Context, host string, err error) error {
	var known *skill.Error
	var answer *errcode.ErrorResponse
	var timeout net.Error
	fail := func(code skill.Code, format string, args ...any) error {
		return &skill.Error{Op: "share", Code: code, Subject: host, Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage), Err: err}
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fail(skill.Timeout, "the server %s timed out", host)
	case ctx.Err() != nil:
		return fail(skill.Cancelled, "interrupted")
	case errors.Is(err, errdef.ErrNotFound):
		return fail(skill.NotFound, "not found on %s", host)
	case errors.As(err, &answer):
		return answered(host, answer, err)
	case errors.Is(err, errPlainHTTP), errors.Is(err, errTooMany), errors.Is(err, errNotAllowed):
		return fail(skill.NetworkDenied, "%s: %s", host, rootOf(err))
	case errors.As(err, &timeout) && timeout.Timeout():
		return fail(skill.Timeout, "the server %s is unreachable", host)
	}
	return fail(skill.ToolInvocationError, "cannot use the server %s: %s", host, rootOf(err))
}

// answered tells what a registry said.
func answered(host string, answer *errcode.ErrorResponse, err error) error {
	code, word := skill.ToolInvocationError, ""
	switch answer.StatusCode {
	case 401:
		code, word = skill.Unauthorized, ": authentication required"
	case 403:
		code, word = skill.Forbidden, ": access denied"
	case 404:
		code, word = skill.NotFound, ": not found"
	case 413:
		code, word = skill.PayloadTooLarge, ": too large"
	case 429:
		code, word = skill.RateLimited, ": too many requests"
	}
	if len(answer.Errors) > 0 && answer.Errors[0].Message != "" {
		word += fmt.Sprintf(" (%s)", skill.CleanText(answer.Errors[0].Message, 120))
	}
	return &skill.Error{
		Op: "share", Code: code, Subject: host, Err: err,
		Message: skill.CleanText(fmt.Sprintf("the server %s answers with status %d%s", host, answer.StatusCode, word), skill.MaxMessage),
	}
}

// rootOf is an error without the addresses that it happened at.
func rootOf(err error) string {
	for _, known := range []error{errPlainHTTP, errTooMany, errNotAllowed} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	var u *url.Error
	switch op, ok := errors.AsType[*net.OpError](err); {
	case ok:
		return "the network: " + op.Op + " failed"
	case errors.As(err, &u):
		err = u.Err
	}
	return skill.CleanText(addresses.ReplaceAllString(err.Error(), "…"), 160)
}

var addresses = regexp.MustCompile(`"?[a-zA-Z][a-zA-Z0-9+.-]*://[^\s]*`)

// unpathed takes the path out of a file error.
func unpathed(err error) string {
	var pe *fs.PathError
	switch le, ok := errors.AsType[*os.LinkError](err); {
	case errors.As(err, &pe):
		return pe.Err.Error()
	case ok:
		return le.Err.Error()
	}
	return err.Error()
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// sorted puts versions in order, the lowest first.
func sorted(list []string) []string {
	slices.SortFunc(list, func(a, b string) int {
		if c := Compare(a, b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return list
}
