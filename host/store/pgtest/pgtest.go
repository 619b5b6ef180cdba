// Package pgtest gives tests a real PostgreSQL server: one for each process of tests, on a
// free port of the loopback, with a new database for whoever asks. It stops when the
// process is gone, however that ended.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Required is the environment variable that, set to "required", makes tests fail, not be
// left out, where there is no PostgreSQL.
const Required = "OPENSKILL_TEST_POSTGRES"

// shared is the server of this process.
var shared struct {
	once   sync.Once
	server *Server
	err    error
	copies sync.Map // *original by name
}

// Start gives the URL of a new database on the server of this process, which is dropped
// when the test ends. Without PostgreSQL the test is skipped.
func Start(t testing.TB) (address string) {
	t.Helper()
	Need(t)
	return shared.server.Database(t)
}

// Need starts the server of this process, where it does not run, and skips the test where
// there is no PostgreSQL.
func Need(t testing.TB) {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = launch(nil) })
	missing(t, shared.err)
}

// Copy is [Start] for a database that is a copy of another one, which prepare fills the
// first time that something is called by this name. It leaves no connection open.
func Copy(t testing.TB, name string, prepare func(address string) error) (address string) {
	t.Helper()
	Need(t)
	made, _ := shared.copies.LoadOrStore(name, &original{})
	o := made.(*original)
	o.once.Do(func() {
		if o.database, o.err = shared.server.create("template0"); o.err == nil {
			o.err = prepare(shared.server.url(o.database))
		}
	})
	if o.err != nil {
		t.Fatalf("pgtest: %v", o.err)
	}
	return shared.server.copyOf(t, o.database)
}

// original is a database that is copied. It is there as long as its server.
type original struct {
	once     sync.Once
	database string
	err      error
}

// New starts a server of the test's own, which it may stop and start, and which ends with
// it. settings are lines of postgresql.conf, such as "max_connections = 5".
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := launch(settings)
	missing(t, err)
	t.Cleanup(s.end)
	return s
}

// noneError says that there is no PostgreSQL, or none that may be started.
type noneError struct{ why string }

func (e noneError) Error() string { return e.why }

func missing(t testing.TB, err error) {
	t.Helper()
	switch none, ok := errors.AsType[noneError](err); {
	case err == nil:
	case ok && os.Getenv(Required) != "required":
		t.Skip(none.why)
	default:
		t.Fatalf("pgtest: %v", err)
	}
}

// Server is a PostgreSQL server.
type Server struct {
	programs string // folder of initdb and pg_ctl
	folder   string // holds the data folder and the log
	port     int
	password string
	as       asUser
	watch    *exec.Cmd
	alive    io.Closer // the watch ends the server when this is closed, as it is when the process is gone
	ended    sync.Once
	count    atomic.Int64
}

// watchScript ends the server when its standard input ends. It goes by the data folder.
const watchScript = `trap '' HUP INT TERM
cat >/dev/null
for again in 1 2 3 4 5; do
	"$1/pg_ctl" stop -D "$2/data" -m immediate -w -t 20 >/dev/null 2>&1
	[ -e "$2/data/postmaster.pid" ] || break
	sleep 1
done
rm -rf "$2"`

func launch(settings []string) (*Server, error) {
	programs, err := find()
	if err != nil {
		return nil, err
	}
	as, err := otherUser()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	s := &Server{programs: programs, folder: folder, as: as}
	if err := s.begin(settings); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return s, nil
}

// find gives the folder of PostgreSQL's programs, the newest one.
func find() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if program, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(program), nil
		}
	}
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") //nolint:forbidigo // no folder of anybody
	if err != nil || len(all) == 0 {
		return "", noneError{"no PostgreSQL here (neither in PATH nor below /usr/lib/postgresql), so that this is not tested: apt-get install postgresql"}
	}
	version := func(path string) int {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		if err != nil {
			return 0
		}
		return n
	}
	newest := slices.MaxFunc(all, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

func (s *Server) begin(settings []string) error {
	if err := s.as.own(s.folder); err != nil {
		return err
	}
	if err := s.watching(); err != nil {
		return err
	}
	kept, err := s.keeper()
	if err == nil && kept != "" && s.copyKept(kept) == nil && s.answers(settings) == nil {
		return nil
	}
	// Nothing was kept, or it is damaged.
	if err = errors.Join(err, os.RemoveAll(kept)); err == nil {
		err = s.initialise(kept)
	}
	if err == nil {
		err = s.answers(settings)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.log())
		s.end()
	}
	return err
}

// answers configures and starts the server.
func (s *Server) answers(settings []string) (err error) {
	for range 5 { // another process may take the port first
		if err = s.configure(settings); err != nil {
			return err
		}
		if err = s.Start(); err == nil || !strings.Contains(s.log(), "Address already in use") {
			return err
		}
	}
	return err
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

// watching starts what ends the server when this process is gone.
func (s *Server) watching() error {
	s.watch = exec.Command("sh", "-c", watchScript, "sh", s.programs, s.folder)
	s.as.become(s.watch)
	in, err := s.watch.StdinPipe()
	if err != nil {
		return err
	}
	s.alive = in
	return s.watch.Start()
}

func (s *Server) configure(settings []string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	lines := append([]string{
		"listen_addresses = '127.0.0.1'",
		"unix_socket_directories = ''",
		"fsync = off",
		"synchronous_commit = off",
		"full_page_writes = off",
		"max_connections = 100",
		"shared_buffers = 64MB",
		"autovacuum_naptime = 10s",
	}, settings...)
	lines = append(lines, fmt.Sprintf("port = %d", s.port), "")
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n"))
	return errors.Join(err, f.Close())
}

// Start starts the server after a Stop, and waits until it answers.
func (s *Server) Start() error {
	return s.run("pg_ctl", "start", "-w", "-t", "60", "-D", s.data(), "-l", filepath.Join(s.folder, "log"))
}

// Stop stops the server as a crash would, and waits until it is gone.
func (s *Server) Stop() error {
	return s.run("pg_ctl", "stop", "-w", "-t", "60", "-m", "immediate", "-D", s.data())
}

// end stops the server for good.
func (s *Server) end() {
	s.ended.Do(func() {
		_ = s.alive.Close()
		_ = s.watch.Wait()
	})
}

func (s *Server) run(program string, args ...string) error {
	_, err := s.say(program, args...)
	return err
}

// say runs a program of PostgreSQL, and gives what it prints.
func (s *Server) say(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, program), args...)
	s.as.become(cmd)
	cmd.Dir = s.folder
	// A file and no pipe: the server, which outlives pg_ctl, may hold it.
	out, err := os.CreateTemp(s.folder, "out")
	if err != nil {
		return "", err
	}
	defer out.Close()
	defer os.Remove(out.Name())
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	said, _ := os.ReadFile(out.Name())
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(said))
	}
	return string(said), nil
}

func (s *Server) log() string {
	said, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	return string(said)
}

func (s *Server) url(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword("openskill", s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Database makes a database, which is dropped when the test ends, and gives its URL.
func (s *Server) Database(t testing.TB) (address string) {
	t.Helper()
	return s.copyOf(t, "template0")
}

func (s *Server) copyOf(t testing.TB, template string) (address string) {
	t.Helper()
	name, err := s.create(template)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		// A server that was stopped takes its databases along.
		_ = s.Exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
	})
	return s.url(name)
}

func (s *Server) create(template string) (name string, err error) {
	name = fmt.Sprintf("t%d", s.count.Add(1))
	return name, s.Exec("CREATE DATABASE " + name + " TEMPLATE " + template)
}

// Exec executes statements as the owner of the server, in the database postgres.
func (s *Server) Exec(statements string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, statements)
	return err
}
