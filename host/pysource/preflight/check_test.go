package preflight_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"openskill/host/agentskills"
	"openskill/host/pysource"
	"openskill/host/pysource/preflight"
	"openskill/internal/musttest"
	"openskill/plugins/python/pythontest"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

var shared pythontest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// analyze is on one folder, so that it is started once.
var analyze = sync.OnceValue(func() *pysource.Analyzer {
	return pysource.New(pysource.Options{Runner: shared.Python(), Dir: shared.Dir()})
})

// options are those of a host with the runtimes of this machine.
func options(t testing.TB) *preflight.Options {
	t.Helper()
	shared.Runner(t, "../../..")
	return &preflight.Options{Python: analyze(), Tenant: "test", Node: true, Modules: homes(t, runtimes.New(shared.State())), Commands: has}
}

// has are some of the programs of the sandbox.
func has(name string) bool {
	return slices.Contains([]string{"python3", "python", "sh", "bash", "curl", "jq", "ls"}, name)
}

// homes knows the modules of the runtimes, as the program does.
func homes(t testing.TB, store *runtimes.Store) func(string) (preflight.Home, bool) {
	t.Helper()
	all := map[string]preflight.Home{}
	for _, name := range []string{"scientific", "slim"} { // what both have is slim's
		library, packages, err := store.Modules(name)
		musttest.Do(t, err)
		for _, p := range packages {
			for _, m := range p.Imports {
				all[m] = preflight.Home{Runtime: name, Package: p.Name}
			}
		}
		for _, m := range library {
			all[m] = preflight.Home{Runtime: name}
		}
	}
	return func(name string) (preflight.Home, bool) { h, ok := all[name]; return h, ok }
}

func folder(t testing.TB, files map[string]string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		musttest.Write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	root := musttest.Get(os.OpenRoot(dir))(t)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// seen are the findings of a folder, as people read them.
func seen(r *preflight.Report) (all []string) {
	for i := range r.Findings {
		all = append(all, r.Findings[i].String())
	}
	return all
}

// What a script does, and what is found. Each want is a part of one finding, in order
// of the lines; there are no others.
func TestPython(t *testing.T) {
	o := options(t)
	tests := []struct {
		name, text string
		verdict    preflight.Severity
		runtime    string
		requires   []string
		want       []string
	}{
		{name: "the standard library", text: "import argparse, json\nfrom pathlib import Path\nfrom collections import Counter\nprint(1)\n", verdict: preflight.Runs, runtime: "slim"},
		{name: "a package of slim", text: "import yaml\nimport dateutil.parser\n", verdict: preflight.Runs, runtime: "slim"},
		{
			name: "a package of scientific", text: "import os\nimport numpy as np\nfrom sklearn.cluster import KMeans\n", verdict: preflight.Runs, runtime: "scientific",
			requires: []string{"numpy", "scikit-learn"},
			want:     []string{"s.py:2: runs: import numpy needs the scientific runtime, which it gets where that is installed", "s.py:3: runs: import sklearn needs the scientific runtime"},
		},
		{
			name: "a package of scientific that it can do without", text: "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n", verdict: preflight.MayDiffer, runtime: "slim",
			want: []string{"s.py:2: may differ: import numpy, which is optional for the script, needs the scientific runtime"},
		},
		{
			name: "one that it can do without, beside one that it needs", text: "try:\n    import scipy\nexcept ImportError:\n    scipy = None\nimport numpy\n", verdict: preflight.Runs, runtime: "scientific", requires: []string{"numpy"},
			want: []string{"s.py:5: runs: import numpy needs the scientific runtime"},
		},
		{name: "an event loop", text: "import asyncio\nasyncio.run(f())\n", verdict: preflight.Runs, runtime: "slim"},
		{
			name: "names that this Python lacks", text: "import hashlib, locale, time\nfrom bs4 import BeautifulSoup\nBeautifulSoup(x, 'html.parser')\nlocale.setlocale(locale.LC_ALL, '')\ntime.tzset()\nhashlib.pbkdf2_hmac('sha256', b'', salt, 1)\nhashlib.scrypt(b'')\nBeautifulSoup(x, 'lxml')\nBeautifulSoup(x, features='xml')\nlocale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')\n",
			verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:5: cannot run: time.tzset is not there", "s.py:7: cannot run: hashlib.scrypt is not there", "s.py:8: cannot run: bs4.BeautifulSoup with lxml", "s.py:10: cannot run: locale.setlocale knows C"},
		},
		{
			name: "names that are missing, taken by imports", text: "from hashlib import scrypt\nfrom multiprocessing.shared_memory import SharedMemory\nfrom multiprocessing import shared_memory\nimport signal, compression.zstd\nscrypt(b'')\n@f(signal.SIGALRM)\ndef g(): pass\n",
			verdict: preflight.CannotRun, runtime: "slim",
			want: []string{
				"s.py:1: cannot run: hashlib.scrypt is not there", "s.py:2: cannot run: import multiprocessing.shared_memory: multiprocessing.shared_memory is not there",
				"s.py:3: cannot run: multiprocessing.shared_memory is not there", "s.py:4: cannot run: import compression.zstd: compression.zstd is not there",
			},
		},
		{
			name: "names that a script can do without", text: "import os\ntry:\n    from os import memfd_create\nexcept ImportError:\n    pass\nif hasattr(os, 'sendfile'):\n    os.sendfile(a, b, 0, 1)\n", verdict: preflight.MayDiffer, runtime: "slim",
			want: []string{"s.py:3: may differ: os.memfd_create is not there", "s.py:7: may differ: os.sendfile is not there"},
		},
		{name: "what a sandbox does not have", text: "import os\nos.nice(0)\n", verdict: preflight.CannotRun, runtime: "slim", want: []string{"s.py:2: cannot run: os.nice is not there"}},
		{
			name: "a package that is nowhere", text: "import requests\nimport cv2\nimport frobnicate.sub\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{
				"s.py:1: runs: import requests needs the package requests, in pure Python; the operator adds it: openskill packages add FOLDER python:requests",
				"s.py:2: cannot run: import cv2: the package opencv-python needs native code, which the sandbox cannot load; use PIL",
				"s.py:3: cannot run: import frobnicate.sub: no runtime has the package frobnicate",
			},
		},
		{
			name: "a package that it can do without", text: "try:\n    import torch\nexcept ImportError:\n    import urllib.request\ntorch.get('x')\n", verdict: preflight.MayDiffer, runtime: "slim",
			want: []string{"s.py:2: may differ: import torch: the package torch needs native code, which the sandbox cannot load; the script catches that"},
		},
		{name: "for type checkers alone", text: "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pydantic\n", verdict: preflight.Runs, runtime: "slim"},
		{
			name: "in a function", text: "def main():\n    import tkinter\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:2: cannot run: import tkinter: there is no screen; only the function that imports it fails"},
		},
		{
			name: "what newer versions have no more", text: "import distutils.util\nimport cgi\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:1: cannot run: import distutils.util: removed in Python 3.13", "s.py:2: cannot run: import cgi"},
		},
		{
			name: "what this machine alone has", text: "import termios\nimport syslog\nimport resource\nimport curses\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:1: cannot run: import termios", "s.py:2: cannot run: import syslog", "s.py:3: cannot run: import resource", "s.py:4: cannot run: import curses"},
		},
		{
			name: "other programs", text: "import subprocess as sp, os\nfrom subprocess import check_output as co\nsp.run(['git'])\nco('ls')\nos.system('ls')\ntry:\n    pass\nexcept sp.CalledProcessError:\n    pass\nos.fork()\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:3: cannot run: git is not there: command not found (127)", "s.py:10: cannot run: os.fork is not there"},
		},
		{name: "programs of this machine", text: "import asyncio, os, shutil, pwd, fcntl, getpass\nshutil.which('jq')\nos.execvp('ls', ['ls'])\nasyncio.create_subprocess_exec('ls')\nos.spawnlp(0, 'ls', 'ls')\ngetpass.getuser()\nfcntl.flock(1, fcntl.LOCK_EX)\n", verdict: preflight.MayDiffer, runtime: "slim", want: []string{"s.py:6: may differ: getpass.getuser tells of the sandbox", "s.py:7: may differ: fcntl.flock: locks of files"}},
		{
			name: "looked for first", text: "import os, shutil, subprocess\nif shutil.which('pbcopy'):\n    subprocess.run(['pbcopy'])\nos.path.exists('/usr/bin/jq')\nos.path.exists('/usr/bin/pbcopy')\nopen('/usr/bin/pbcopy')\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:3: may differ: pbcopy is not there, and the script looks for it first", `s.py:5: may differ: os.path.exists("/usr/bin/pbcopy"): the sandbox shows the skill's folder alone, so the answer is no`, `s.py:6: cannot run: open("/usr/bin/pbcopy")`},
		},
		{name: "a module that starts programs, imported alone", text: "import subprocess, threading, socket, multiprocessing, signal\n", verdict: preflight.Runs, runtime: "slim"},
		{
			name: "threads", text: "import threading\nfrom concurrent.futures import ThreadPoolExecutor as T\nimport multiprocessing as mp\nthreading.Thread(target=print).start()\nwith T() as t: pass\nmp.Pool(2)\nthreading.Lock()\n", verdict: preflight.MayDiffer, runtime: "slim",
			want: []string{"s.py:4: runs: threading.Thread: threads run one after another", "s.py:5: runs: concurrent.futures.ThreadPoolExecutor: threads run one after another", "s.py:6: may differ: multiprocessing.Pool: these processes are threads"},
		},
		{
			name: "sockets", text: "import socket, urllib.request\nfrom urllib.parse import quote\nurllib.request.urlopen('http://x')\nsocket.create_connection(('x', 1))\nquote('x')\nsocket.create_server(('x', 1))\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:3: runs: urllib.request.urlopen sends HTTP requests", "s.py:4: may differ: socket.create_connection: sockets carry HTTP", "s.py:6: cannot run: socket.create_server is not HTTP"},
		},
		{
			name: "compiled code", text: "import ctypes\nctypes.CDLL('libc.so.6')\nctypes.c_int(1)\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:2: cannot run: ctypes.CDLL calls compiled code"},
		},
		{
			name: "signals", text: "import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nsignal.alarm(3)\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:2: may differ: signal.signal: no signal", "s.py:3: cannot run: signal.alarm"},
		},
		{
			name: "files outside", text: "from pathlib import Path\nimport os\nopen('/etc/passwd')\nPath('~/x').expanduser()\nos.listdir('../other')\nopen('data/x.json')\nPath('/tmp/x')\nos.path.join('/etc', 'x')\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{
				`s.py:3: cannot run: open("/etc/passwd"): the sandbox shows the skill's folder alone`, `s.py:4: may differ: pathlib.Path("~/x"): there is no home`,
				`s.py:5: may differ: os.listdir("../other"): it may lead out`, `s.py:7: may differ: pathlib.Path("/tmp/x"): files of other programs`,
			},
		},
		{
			name: "standard input", text: "import sys\nfor line in sys.stdin: pass\nsys.stdin.read()\ninput()\n", verdict: preflight.Runs, runtime: "slim",
			want: []string{"s.py:2: runs: it reads standard input"},
		},
		{
			name: "the environment, told once", text: "import os\nos.environ['A']\nos.getenv('B')\n", verdict: preflight.Runs, runtime: "slim",
			want: []string{"s.py:2: runs: it reads environment variables"},
		},
		{
			name: "not Python", text: "print 'x'\n", verdict: preflight.CannotRun, runtime: "slim",
			want: []string{"s.py:1: cannot run: Python cannot read it"},
		},
		{name: "empty", text: "", verdict: preflight.Runs, runtime: "slim"},
		{name: "a mark of the order of bytes", text: "\ufeffimport json\n", verdict: preflight.Runs, runtime: "slim"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := musttest.Get(preflight.Check(t.Context(), folder(t, map[string]string{"s.py": test.text}), o))(t)
			if len(r.Scripts) != 1 {
				t.Fatalf("%d scripts", len(r.Scripts))
			}
			s := r.Scripts[0]
			if s.Verdict != test.verdict || r.Verdict != test.verdict || s.Runtime != test.runtime || !slices.Equal(s.Requires, test.requires) {
				t.Errorf("%s of the folder, %+v", r.Verdict, s)
			}
			found := seen(r)
			for i := range max(len(found), len(test.want)) {
				switch {
				case i >= len(found):
					t.Errorf("missing: %s", test.want[i])
				case i >= len(test.want):
					t.Errorf("too much: %s", found[i])
				case !strings.HasPrefix(found[i], test.want[i]):
					t.Errorf("%s\nwant %s", found[i], test.want[i])
				}
			}
		})
	}
}

// Packages are proposed for uploads, too, which get them by a route of the host.
func TestPackagesOfUploads(t *testing.T) {
	files := map[string]string{"skill.yaml": "id: x\n", "main.py": "import requests\n", "main.js": "import _ from 'lodash';\n"}
	r, err := preflight.Check(t.Context(), folder(t, files), options(t))
	musttest.Do(t, err)
	if found := strings.Join(seen(r), "\n"); r.Verdict != preflight.Runs || len(r.Needs.Packages) != 2 || strings.Contains(found, "packages add") || !strings.Contains(found, "POST /skills/ID/versions/VERSION/packages") {
		t.Errorf("%v\n%s", r.Needs.Packages, found)
	}
	files["SKILL.md"] = "---\nname: x\n---\n"
	if r, err = preflight.Check(t.Context(), folder(t, files), options(t)); err != nil || len(r.Needs.Packages) != 2 || !strings.Contains(strings.Join(seen(r), "\n"), "packages add FOLDER") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A script's own modules are found where the interpreter finds them, and what they
// need counts for it.
func TestOwnModules(t *testing.T) {
	r, err := preflight.Check(t.Context(), folder(t, map[string]string{
		"SKILL.md":                "---\nname: x\n---\n",
		"scripts/main.py":         "import helper\nfrom lib import deep\nfrom lib.deep import f\nimport shared.common\nimport json\n",
		"scripts/helper.py":       "import pandas\n",
		"scripts/lib/__init__.py": "",
		"scripts/lib/deep.py":     "from . import deeper\nfrom .missing import x\n",
		"scripts/lib/deeper.py":   "import subprocess\nsubprocess.run(['x'])\n",
		"shared/common.py":        "",
		"scripts/alone.py":        "import json\n",
		"scripts/json.py":         "import frobnicate\n",
		"tests/test_main.py":      "import pytest\n",
		"scripts/test_main.py":    "import pytest\n",
		".git/x.py":               "import pytest\n",
	}), options(t))
	musttest.Do(t, err)
	want := []string{
		"scripts/helper.py:1: runs: import pandas needs the scientific runtime",
		"scripts/json.py:1: cannot run: import frobnicate",
		"scripts/lib/deep.py:2: cannot run: there is no module .missing in the folder",
		"scripts/lib/deeper.py:2: cannot run: x is not there",
	}
	found := seen(r)
	if len(found) != len(want) {
		t.Fatalf("%q", found)
	}
	for i := range want {
		if !strings.HasPrefix(found[i], want[i]) {
			t.Errorf("%s\nwant %s", found[i], want[i])
		}
	}
	verdicts := map[string]preflight.Severity{}
	for _, s := range r.Scripts {
		verdicts[s.Name] = s.Verdict
		if s.Name != "scripts/main.py" {
			continue
		}
		modules := []string{"scripts/helper.py", "scripts/json.py", "scripts/lib/__init__.py", "scripts/lib/deep.py", "scripts/lib/deeper.py", "shared/common.py"}
		if !slices.Equal(s.Modules, modules) || s.Runtime != "scientific" || !slices.Equal(s.Requires, []string{"pandas"}) {
			t.Errorf("%+v", s)
		}
	}
	if verdicts["scripts/main.py"] != preflight.CannotRun || verdicts["scripts/helper.py"] != preflight.Runs || verdicts["scripts/alone.py"] != preflight.CannotRun {
		t.Errorf("%v", verdicts)
	}
	if !slices.Equal(r.LeftOut, []string{"scripts/test_main.py", "tests/test_main.py"}) {
		t.Errorf("left out: %q", r.LeftOut)
	}
}

func TestOtherLanguages(t *testing.T) {
	r, err := preflight.Check(t.Context(), folder(t, map[string]string{
		"a.zsh": "ls\n", "b.ts": "import { f } from './lib/f';\n", "c.cs": "", "d.rb": "", "e.R": "", "fast.so": "\x7fELF", "README.md": "```sh\nls\n```\n",
		"good.mjs":  "import * as std from 'std';\nimport { f } from './lib/f.mjs';\nconsole.log(f(scriptArgs));\n",
		"lib/f.mjs": "export const f = (a) => a.length;\n",
		"bad.mjs":   "import fs from 'node:fs';\nimport x from 'left-pad'\nimport { g } from './lib/none';\nconst y = require('cluster');\nconst z = await fetch('x');\n// fetch('in a comment')\nnew Worker('x');\nimport https from 'https';\nimport { f } from './lib/f';\n",
	}), options(t))
	musttest.Do(t, err)
	want := []string{
		"a.zsh: cannot run: the sandbox has no interpreter for zsh scripts; write it in Python or JavaScript",
		"bad.mjs:2: runs: package left-pad is not in the skill",
		"bad.mjs:3: cannot run: ./lib/none: there is no such file",
		"bad.mjs:4: cannot run: Node's module cluster does nothing",
		"bad.mjs:5: runs: fetch makes the requests that the skill was granted",
		"bad.mjs:7: cannot run: new Worker is not there",
		"bad.mjs:8: runs: https makes the requests",
		"c.cs: cannot run", "d.rb: cannot run", "e.R: cannot run",
		"fast.so: may differ: it is native code",
	}
	found := seen(r)
	if len(found) != len(want) {
		t.Fatalf("%s", strings.Join(found, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(found[i], want[i]) {
			t.Errorf("%s\nwant %s", found[i], want[i])
		}
	}
	for _, s := range r.Scripts {
		if s.Name == "good.mjs" && (s.Verdict != preflight.Runs || s.Runtime != "javascript" || !slices.Equal(s.Modules, []string{"lib/f.mjs"})) {
			t.Errorf("%+v", s)
		}
	}
	if run, _, cannot := r.Count(); run != 3 || cannot != 5 {
		t.Errorf("%d run, %d cannot", run, cannot)
	}
}

// Without Node's modules a script that uses none of them runs, and another says what is missing.
func TestNodeIsNotInstalled(t *testing.T) {
	o := options(t)
	o.Node = false
	r, err := preflight.Check(t.Context(), folder(t, map[string]string{
		"plain.js": "console.log(1);\n", "old.mjs": "import * as std from 'std';\n", "a.js": "require('./x');\n", "b.mjs": "import fs from 'fs';\n", "c.ts": "",
	}), o)
	musttest.Do(t, err)
	if run, _, cannot := r.Count(); run != 2 || cannot != 3 || !strings.Contains(seen(r)[0], "Node's modules are not installed") {
		t.Errorf("%d run, %d cannot: %q", run, cannot, seen(r))
	}
}

// What is too large, nested too deeply or no text at all is said, and ends nothing.
func TestHostile(t *testing.T) {
	o := options(t)
	huge := strings.Repeat("# filler\n", (1<<20)/9+1)
	r, err := preflight.Check(t.Context(), folder(t, map[string]string{
		"deep.py":         strings.Repeat("(", 100_000) + strings.Repeat(")", 100_000),
		"huge.py":         huge,
		"zero.py":         "x = 1\x00\n",
		"bytes.py":        "\xff\xfe\xfd",
		"codec.py":        "# coding: nonsense\n",
		"x\u202ey\x1b.py": "import frob\u0131\n",
	}), o)
	musttest.Do(t, err)
	for _, s := range r.Scripts {
		if s.Verdict == preflight.Runs {
			t.Errorf("%s runs", s.Name)
		}
	}
	for _, f := range r.Findings {
		if strings.ContainsAny(f.File+f.What, "\x1b\u202e\n") {
			t.Errorf("%+v", f)
		}
	}
	t.Run("many files", func(t *testing.T) {
		small := *o
		small.Files = 3
		r, err := preflight.Check(t.Context(), folder(t, map[string]string{"a.py": "", "b.py": "", "c.py": "", "d.py": "", "e.py": ""}), &small)
		if err != nil || !r.Cut || len(r.Scripts) != 3 || r.Verdict != preflight.Runs {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("many bytes", func(t *testing.T) {
		small := *o
		small.Total = 10
		r, err := preflight.Check(t.Context(), folder(t, map[string]string{"a.py": "x = 12\n", "b.py": "x = 12\n"}), &small)
		if err != nil || !r.Cut || r.Scripts[0].Verdict != preflight.Runs || r.Scripts[1].Verdict != preflight.MayDiffer {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("one large file", func(t *testing.T) {
		small := *o
		small.Bytes = 6
		r, err := preflight.Check(t.Context(), folder(t, map[string]string{"a.py": "x = 12\n"}), &small)
		if err != nil || r.Verdict != preflight.MayDiffer {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("files that all import each other", func(t *testing.T) {
		var text strings.Builder
		files := map[string]string{}
		for i := range 50 {
			fmt.Fprintf(&text, "import m%d.x, d%d\n", i, i)
		}
		for i := range 50 {
			files[fmt.Sprintf("d%d/m%d.py", i, i)] = text.String()
		}
		r, err := preflight.Check(t.Context(), folder(t, files), o)
		if err != nil || r.Verdict != preflight.Runs || len(r.Scripts) != 50 || len(r.Scripts[7].Modules) != 49 {
			t.Errorf("%v, %v", r.Verdict, err)
		}
	})
	t.Run("a link out of the folder", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.py")); err != nil {
			t.Skip(err)
		}
		root := musttest.Get(os.OpenRoot(dir))(t)
		defer root.Close()
		r, err := preflight.Check(t.Context(), root, o)
		if err != nil || len(r.Findings) != 1 || r.Findings[0].Kind != preflight.KindFile || len(r.Scripts) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("ended in the middle", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := preflight.Check(ctx, folder(t, map[string]string{"a.py": ""}), o); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("without an analyzer", func(t *testing.T) {
		if _, err := preflight.Check(t.Context(), folder(t, nil), &preflight.Options{}); err == nil {
			t.Error("no error")
		}
	})
}

// broken is an analyzer that cannot do its part.
type broken struct{}

func (broken) Analyze(context.Context, string, []byte) (*pysource.Module, error) {
	return nil, &skill.Error{Code: skill.WorkerCrashed}
}

func TestHostFails(t *testing.T) {
	o := &preflight.Options{Python: broken{}, Modules: func(string) (preflight.Home, bool) { return preflight.Home{}, false }}
	if _, err := preflight.Check(t.Context(), folder(t, map[string]string{"a.py": ""}), o); skill.CodeOf(err) != skill.WorkerCrashed {
		t.Errorf("%v", err)
	}
}

// What the check calls runnable is what agents are told that runs.
func TestScriptsThatRun(t *testing.T) {
	files := map[string]string{}
	for _, ext := range agentskills.DefaultScriptExtensions() {
		files["a"+ext] = "\n"
	}
	r := musttest.Get(preflight.Check(t.Context(), folder(t, files), options(t)))(t)
	var runs []string
	for _, s := range r.Scripts {
		if s.Verdict == preflight.Runs {
			runs = append(runs, filepath.Ext(s.Name))
		}
	}
	slices.Sort(runs)
	if want := slices.Sorted(slices.Values(agentskills.DefaultRunExtensions())); !slices.Equal(runs, want) {
		t.Errorf("the check says that %v run, agents are told %v", runs, want)
	}
}
