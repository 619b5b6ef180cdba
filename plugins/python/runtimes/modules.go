package runtimes

import (
	"slices"
	"strings"
)

// Modules gives the top-level modules that a script can import on a runtime, sorted:
// those of the standard library that work there (names that begin with an underscore
// left out) and those of packages. It does not need the runtime to be installed; a
// test holds it against those that are. The error is a *skill.Error of code
// NOT_FOUND.
func (s *Store) Modules(name string) (library []string, packages []Package, err error) {
	r, err := s.recipe("runtimes.Modules", name)
	if err != nil {
		return nil, nil, err
	}
	library = strings.Fields(library315)
	if strings.HasPrefix(r.version, "3.12.") {
		library = strings.Fields(library312)
	}
	for i := range Packages() {
		if p := &Packages()[i]; r.has([]*Package{p}) {
			packages = append(packages, *p)
		}
	}
	return slices.Clip(library), packages, nil
}

// What of the standard library can be imported under WASI: the rest needs processes,
// terminals, users or libraries that are not there.
const (
	library315 = `
	abc annotationlib argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 cProfile
	calendar cmath cmd code codecs codeop collections colorsys compileall compression concurrent
	configparser contextlib contextvars copy copyreg csv ctypes dataclasses datetime dbm decimal difflib
	dis doctest email encodings enum errno faulthandler filecmp fileinput fnmatch fractions ftplib
	functools gc genericpath getopt getpass gettext glob graphlib gzip hashlib heapq hmac html http
	imaplib importlib inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox
	marshal math mimetypes mmap modulefinder multiprocessing netrc ntpath nturl2path numbers opcode
	operator optparse os pathlib pdb pickle pickletools pkgutil platform plistlib poplib posix posixpath
	pprint profile profiling pstats py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re
	reprlib rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtplib
	socket socketserver sqlite3 stat statistics string stringprep struct subprocess symtable sys
	sysconfig tabnanny tarfile tempfile textwrap threading time timeit token tokenize tomllib trace
	traceback tracemalloc types typing unicodedata unittest urllib uuid warnings wave weakref webbrowser
	wsgiref xml xmlrpc zipapp zipfile zipimport zlib zoneinfo
`
	library312 = `
	abc aifc argparse array ast asyncio atexit audioop base64 bdb binascii bisect builtins bz2 cProfile
	calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent
	configparser contextlib contextvars copy copyreg crypt csv dataclasses datetime dbm decimal difflib
	dis doctest email encodings enum errno faulthandler filecmp fileinput fnmatch fractions ftplib
	functools gc genericpath getopt getpass gettext glob graphlib gzip hashlib heapq hmac html http
	imaplib imghdr importlib inspect io ipaddress itertools json keyword linecache locale logging
	mailbox mailcap marshal math mimetypes modulefinder netrc nntplib ntpath nturl2path numbers opcode
	operator optparse os pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix
	posixpath pprint profile pstats py_compile pyclbr pydoc pyexpat queue quopri random re reprlib runpy
	sched secrets select selectors shelve shlex shutil signal site smtplib sndhdr socket socketserver
	sqlite3 sre_compile sre_constants sre_parse stat statistics string stringprep struct subprocess
	sunau symtable sys sysconfig tabnanny tarfile telnetlib tempfile textwrap threading time timeit
	token tokenize tomllib trace traceback tracemalloc types typing unicodedata unittest urllib uuid
	warnings wave weakref wsgiref xml xmlrpc xxsubtype zipapp zipfile zipimport zlib zoneinfo
`
)
