package community

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
)

// servingArg is the first argument of this program where it gives the answers of a case to the
// command that follows, in a network of their own.
const servingArg = "-community-serve"

// serve answers on the ports of HTTP and HTTPS while a command runs, and gives its exit code.
func serve(command []string) int {
	text, err := os.ReadFile("/opt/answers/answers.json")
	if err != nil {
		panic(err)
	}
	var answers []answer
	if err := json.Unmarshal(text, &answers); err != nil {
		panic(err)
	}
	pair, err := tls.LoadX509KeyPair("/opt/answers/cert.pem", "/opt/answers/key.pem")
	if err != nil {
		panic(err)
	}
	for _, port := range []string{"80", "443"} {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:"+port)
		if err != nil {
			panic(err)
		}
		if port == "443" {
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
		}
		s := &http.Server{Handler: handler(answers), ReadHeaderTimeout: time.Minute}
		go func() { _ = s.Serve(l) }() // until the program ends
	}
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		panic(err)
	}
	return cmd.ProcessState.ExitCode()
}

// handler gives the answers of a case; a request that it has none for is 404 and says so. A
// URL without a query stands for all queries.
func handler(answers []answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := range answers {
			a := &answers[i]
			u, err := url.Parse(a.URL)
			is := r.URL.RequestURI()
			if u != nil && u.RawQuery == "" {
				is, _, _ = strings.Cut(is, "?")
			}
			if err != nil || u.Hostname() != host(r.Host) || u.RequestURI() != is || cmp.Or(a.Method, http.MethodGet) != r.Method {
				continue
			}
			for name, value := range a.Header {
				w.Header().Set(name, value)
			}
			w.Header()["Date"] = nil
			w.WriteHeader(cmp.Or(a.Status, http.StatusOK))
			_, _ = io.WriteString(w, a.Body)
			return
		}
		http.Error(w, "no answer is recorded for "+r.Method+" "+r.Host+r.URL.RequestURI(), http.StatusNotFound)
	})
}

func host(hostport string) string {
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		return name
	}
	return hostport
}

// hosts are the names that a case has answers of.
func (k *kase) hosts(t *testing.T) (names []string) {
	t.Helper()
	for _, a := range k.HTTP {
		u := musttest.Get(url.Parse(a.URL))(t)
		names = append(names, u.Hostname())
	}
	return names
}

// authority is who signs the certificates of the hosts of all cases.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := musttest.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "openSkill tests"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der := musttest.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	cert := musttest.Get(x509.ParseCertificate(der))(t)
	return &authority{cert, key}
}

// certificate is one for these hosts.
func (a *authority) certificate(t *testing.T, hosts []string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "hosts"}, DNSNames: hosts, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
	}
	der := musttest.Get(x509.CreateCertificate(rand.Reader, template, a.cert, &a.key.PublicKey, a.key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

// writeAnswers writes what serve reads.
func (k *kase) writeAnswers(t *testing.T, dir string) {
	t.Helper()
	musttest.Do(t, os.Mkdir(dir, 0o700))
	if len(k.HTTP) == 0 {
		return
	}
	a := newAuthority(t)
	pair := a.certificate(t, k.hosts(t))
	key := musttest.Get(x509.MarshalPKCS8PrivateKey(a.key))(t)
	answers := musttest.Get(json.Marshal(k.HTTP))(t)
	lines := "127.0.0.1 localhost\n"
	for _, name := range k.hosts(t) {
		lines += "127.0.0.1 " + name + "\n"
	}
	for name, data := range map[string][]byte{
		"answers.json": answers, "hosts": []byte(lines),
		"ca.pem":   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}),
		"cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
}

// everywhere is the address of all hosts: the connections that are checked against it are
// made to the server of the case.
type everywhere struct{}

func (everywhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}
