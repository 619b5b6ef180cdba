import select
import socket
import ssl
import sys
from urllib.parse import urlsplit

HTTP, HTTPS = map(urlsplit, sys.argv[1:])

with socket.create_connection((HTTP.hostname, HTTP.port), timeout=5) as s:
    s.sendall(b"GET /chunks/2 HTTP/1.1\r\n")
    s.sendall(b"Connection: close\r\n\r\n")
    s.shutdown(socket.SHUT_WR)
    print(s.recv(12, socket.MSG_PEEK), s.makefile("rb").read().partition(b"\r\n\r\n")[2], s.recv(1))

context = ssl.create_default_context()
with context.wrap_socket(socket.create_connection((HTTPS.hostname, HTTPS.port)), server_hostname=HTTPS.hostname) as s:
    s.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 4\r\n\r\nbo")
    s.sendall(b"dy")
    print(isinstance(s, ssl.SSLSocket), s.version(), s.getpeercert(), s.recv(65536).split(b"\r\n")[-1])
print(ssl.OPENSSL_VERSION.split()[0], ssl.HAS_SNI, ssl.TLSVersion.TLSv1_2 < ssl.TLSVersion.TLSv1_3, issubclass(ssl.SSLError, OSError))


def fails(what):
    try:
        print(what())
    except OSError as e:
        print(type(e).__name__, e.strerror)


def connect(host, port, *, kind=socket.SOCK_STREAM, send=b""):
    with socket.socket(socket.AF_INET, kind) as s:
        s.settimeout(0.1)
        s.connect((host, port))
        if send:
            s.sendall(send)
        return s.recv(100)


def listen():
    socket.create_server(("127.0.0.1", 0))


fails(lambda: connect("db.example.com", 5432))
fails(lambda: connect("8.8.8.8", 53))
fails(lambda: connect("8.8.8.8", 80, kind=socket.SOCK_DGRAM))
fails(lambda: connect("chat.example.com", 4000))
fails(lambda: connect("chat.example.com", 4000, send=b"\x00\x01"))
fails(lambda: connect("chat.example.com", 443, send=b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"))
fails(lambda: connect("example.com", 80, send=b"GET / HTTP/1.1\r\n\r\n"))
fails(lambda: socket.gethostbyname("example.com"))
fails(listen)
print(socket.gethostbyname("localhost"), socket.getaddrinfo("example.com", "https")[0][4], socket.socket().connect_ex(("a", 25)) != 0)
with socket.socket() as s:
    print(s.fileno() > 2, s.family.name, s.type.name, s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
