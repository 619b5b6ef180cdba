package preflight

import "slices"

// rule is what the sandbox makes of a use. A nil rule in the table takes a name out
// of the one in front of it.
type rule struct {
	kind     Kind
	severity Severity
	call     bool                     // only calls count: a constant or an exception of the module is there
	once     bool                     // told once a file
	small    bool                     // not on a large runtime, which has it
	word     func(second string) bool // only calls whose second argument is a text of which this holds
	what     string                   // %s: the name
	instead  string
}

var (
	process = &rule{
		kind: KindProcess, severity: CannotRun, call: true,
		what: "%s is not there: the sandbox has no copies of a process", instead: "use subprocess.run",
	}
	interpreters = &rule{
		kind: KindThread, severity: CannotRun, call: true,
		what: "%s needs other interpreters, and the sandbox has one", instead: "use ThreadPoolExecutor",
	}
	threads = &rule{
		kind: KindThread, severity: Runs, call: true,
		what: "%s: threads run one after another",
	}
	processes = &rule{
		kind: KindThread, severity: MayDiffer, call: true,
		what: "%s: these processes are threads, which run one after another and share their globals",
	}
	segments = &rule{
		kind: KindThread, severity: CannotRun, call: true,
		what: "%s needs memory that processes share, and the sandbox has none", instead: "use multiprocessing.Array, or a file",
	}
	requests = &rule{
		kind: KindNetwork, severity: Runs, call: true,
		what: "%s sends HTTP requests, and the sandbox allows only granted addresses", instead: "grant each, as in openskill script … --allow URL",
	}
	sockets = &rule{
		kind: KindNetwork, severity: MayDiffer, call: true,
		what: "%s: sockets carry HTTP to granted addresses, and nothing else", instead: "connect by HTTP",
	}
	network = &rule{
		kind: KindNetwork, severity: CannotRun, call: true,
		what: "%s is not HTTP, or waits for connections: the sandbox has HTTP requests alone", instead: "do it outside, and give the result as an argument or on standard input",
	}
	native = &rule{
		kind: KindNative, severity: CannotRun, call: true,
		what: "%s calls compiled code, which the sandbox cannot load", instead: "use pure Python",
	}
	signals = &rule{
		kind: KindSignal, severity: MayDiffer, call: true,
		what: "%s: no signal ever comes", instead: "the host ends a run at its time limit",
	}
	alarm = &rule{
		kind: KindSignal, severity: CannotRun, call: true,
		what: "%s: there are no signals", instead: "leave it out: the host ends a run at its time limit",
	}
	input = &rule{
		kind: KindInput, severity: Runs, once: true,
		what: "it reads standard input", instead: "callers give it as input",
	}
	environment = &rule{
		kind: KindEnvironment, severity: Runs, once: true,
		what: "it reads environment variables; the sandbox has only granted ones", instead: "grant each, as in openskill script … --env NAME",
	}
	home = &rule{
		kind: KindFile, severity: MayDiffer, call: true,
		what: "%s: there is no home folder of a user", instead: insteadFiles,
	}
	machine = &rule{
		kind: KindSystem, severity: MayDiffer, call: true,
		what: "%s tells of the sandbox, not of this machine",
	}
	absent = &rule{ // the names of missing.txt
		kind: KindSystem, severity: CannotRun,
		what: "%s is not there, as it is in CPython on Linux", instead: "leave it out, or ask hasattr before",
	}
	users = &rule{
		kind: KindSystem, severity: CannotRun, call: true,
		what: "%s: there are no users, groups and owners of files", instead: "leave it out, or take the value as an argument",
	}
	terminal = &rule{
		kind: KindSystem, severity: CannotRun, call: true,
		what: "%s needs a terminal, and the sandbox has none", instead: "take the value as an argument or on standard input",
	}
	locales = &rule{
		kind: KindSystem, severity: CannotRun, call: true,
		what: "%s knows C, POSIX and C.UTF-8: any other is a locale.Error", instead: "format numbers and dates in the script",
		word: func(name string) bool { return !slices.Contains([]string{"", "C", "POSIX", "C.UTF-8", "C.utf8"}, name) },
	}
	parser = &rule{
		kind: KindImport, severity: CannotRun, call: true, small: true,
		what: "%s with lxml needs the scientific runtime, which a script gets that imports lxml", instead: `use "html.parser"`,
		word: func(name string) bool { return slices.Contains([]string{"lxml", "lxml-xml", "xml"}, name) },
	}
	search = &rule{
		kind: KindNative, severity: MayDiffer, call: true,
		what: "%s finds none: the sandbox cannot load compiled code", instead: "use pure Python",
	}
	locks = &rule{
		kind: KindFile, severity: MayDiffer, call: true,
		what: "%s: locks of files are given to anybody who asks",
	}
	browser = &rule{
		kind: KindProcess, severity: MayDiffer, call: true,
		what: "%s opens nothing: there is no browser", instead: "print the address",
	}
)

// rules has the names of what a sandbox lacks. The longest name that is in front of a
// use counts.
var rules = map[string]*rule{
	"os.fork":      process,
	"os.forkpty":   process,
	"os.startfile": process,
	"pty.spawn":    process,
	"pty.fork":     process,

	"webbrowser.open":         browser,
	"webbrowser.open_new":     browser,
	"webbrowser.open_new_tab": browser,
	"webbrowser.get":          browser,

	"threading.Thread":                               threads,
	"threading.Timer":                                threads,
	"_thread.start_new_thread":                       threads,
	"concurrent.futures.ThreadPoolExecutor":          threads,
	"concurrent.futures.thread.ThreadPoolExecutor":   threads,
	"concurrent.futures.InterpreterPoolExecutor":     interpreters,
	"asyncio.to_thread":                              threads,
	"concurrent.futures.ProcessPoolExecutor":         processes,
	"concurrent.futures.process.ProcessPoolExecutor": processes,
	"multiprocessing":                                processes,
	"multiprocessing.cpu_count":                      machine,
	"multiprocessing.freeze_support":                 nil,
	"multiprocessing.set_start_method":               nil,
	"multiprocessing.current_process":                nil,
	"multiprocessing.shared_memory":                  segments,

	"socket":                          sockets,
	"socket.create_server":            network,
	"socket.getaddrinfo":              nil,
	"socket.gethostname":              machine,
	"socket.getfqdn":                  machine,
	"socket.timeout":                  nil,
	"socket.error":                    nil,
	"socket.gaierror":                 nil,
	"socket.inet_aton":                nil,
	"socket.inet_ntoa":                nil,
	"socket.inet_pton":                nil,
	"socket.inet_ntop":                nil,
	"socket.htons":                    nil,
	"socket.htonl":                    nil,
	"socket.ntohs":                    nil,
	"socket.ntohl":                    nil,
	"socketserver":                    network,
	"http.server.HTTPServer":          network,
	"http.server.ThreadingHTTPServer": network,
	"http.client.HTTPConnection":      requests,
	"http.client.HTTPSConnection":     requests,
	"urllib.request.urlopen":          requests,
	"urllib.request.urlretrieve":      requests,
	"urllib.request.build_opener":     requests,
	"xmlrpc.client.ServerProxy":       requests,
	"xmlrpc.server":                   network,
	"wsgiref.simple_server":           network,
	"ftplib.FTP":                      network,
	"ftplib.FTP_TLS":                  network,
	"imaplib.IMAP4":                   network,
	"imaplib.IMAP4_SSL":               network,
	"poplib.POP3":                     network,
	"poplib.POP3_SSL":                 network,
	"smtplib.SMTP":                    network,
	"smtplib.SMTP_SSL":                network,
	"asyncio.open_connection":         sockets,
	"asyncio.start_server":            network,
	"asyncio.open_unix_connection":    network,

	"ctypes.CDLL":              native,
	"ctypes.PyDLL":             native,
	"ctypes.WinDLL":            native,
	"ctypes.cdll":              native,
	"ctypes.windll":            native,
	"ctypes.pythonapi":         native,
	"ctypes.util.find_library": search,
	"ctypes.cdll.LoadLibrary":  native,

	"signal.signal":       signals,
	"signal.alarm":        alarm,
	"signal.setitimer":    alarm,
	"signal.pause":        alarm,
	"signal.sigwait":      alarm,
	"signal.pthread_kill": alarm,

	"input":                 input,
	"sys.stdin":             input,
	"sys.__stdin__":         nil,
	"sys.stdin.isatty":      nil,
	"sys.stdin.reconfigure": nil,
	"sys.stdin.encoding":    nil,
	"fileinput.input":       input,
	"getpass.getpass":       terminal,
	"getpass.getuser":       machine,
	"os.ttyname":            terminal,
	"os.openpty":            terminal,
	"os.tcgetpgrp":          terminal,

	"os.environ": environment,
	"os.getenv":  environment,
	// Setting one is a script's own business.
	"os.environ.setdefault": nil,
	"os.putenv":             nil,

	"os.path.expanduser":      home,
	"pathlib.Path.home":       home,
	"pathlib.Path.expanduser": home,
	"os.getlogin":             machine,
	"os.getuid":               machine,
	"os.geteuid":              machine,
	"os.getgid":               machine,
	"os.getegid":              machine,
	"os.getgroups":            machine,
	"os.setuid":               users,
	"os.setgid":               users,
	"os.chown":                users,
	"os.lchown":               users,
	"shutil.chown":            users,
	"locale.setlocale":        locales,
	"bs4.BeautifulSoup":       parser,
	"os.sysconf":              machine,
	"os.getpid":               machine,
	"os.getppid":              machine,
	"os.uname":                machine,
	"os.cpu_count":            machine,
	"platform.node":           machine,
	"platform.platform":       machine,
	"platform.system":         machine,
	"platform.machine":        machine,
	"platform.uname":          machine,
	"platform.release":        machine,
	"platform.processor":      machine,
	"uuid.getnode":            machine,
	"pwd":                     machine,
	"grp":                     machine,
	"fcntl.flock":             locks,
	"fcntl.lockf":             locks,
	"fcntl.ioctl":             terminal,
	"sys.platform":            {kind: KindSystem, severity: MayDiffer, once: true, what: `sys.platform is "wasi"`},
}

// pathCalls are functions that take paths, and how many of their first arguments
// are some.
var pathCalls = map[string]int{
	"open": 1, "io.open": 1, "os.open": 1, "codecs.open": 1, "gzip.open": 1, "bz2.open": 1, "lzma.open": 1,
	"tarfile.open": 1, "zipfile.ZipFile": 1, "sqlite3.connect": 1, "pathlib.Path": 1, "pathlib.PurePath": 0,
	"pathlib.PosixPath": 1, "os.listdir": 1, "os.scandir": 1, "os.walk": 1, "os.mkdir": 1, "os.makedirs": 1,
	"os.chdir": 1, "os.remove": 1, "os.unlink": 1, "os.rmdir": 1, "os.rename": 2, "os.replace": 2,
	"os.stat": 1, "os.path.exists": 1, "os.path.isfile": 1, "os.path.isdir": 1, "os.path.getsize": 1,
	"os.path.expanduser": 0, "shutil.copy": 2, "shutil.copy2": 2, "shutil.copyfile": 2, "shutil.copytree": 2,
	"shutil.move": 2, "shutil.rmtree": 1, "glob.glob": 1, "glob.iglob": 1, "logging.FileHandler": 1,
}

// asks are those of them that tell whether a file is there: without it, a script goes on.
var asks = map[string]bool{"os.path.exists": true, "os.path.isfile": true, "os.path.isdir": true}
