import gzip
import http.client
import io
import sys
import urllib.error
import urllib.parse
import urllib.request

HTTP, HTTPS = sys.argv[1:]


def get(path, base=HTTP, **more):
    with urllib.request.urlopen(base + path, **more) as r:
        return r.status, r.read().decode()


print("plain", get("/status/200"), get("/redirect/3"), get("/chunks/3"))
print("https", get("/echo", HTTPS))
print("form", get("/echo/a?b=c%20d", data=urllib.parse.urlencode({"q": "ü"}).encode()))
try:
    get("/status/404")
except urllib.error.HTTPError as e:
    print("error", e, e.read())

compressed = urllib.request.Request(HTTP + "/gzip", headers={"Accept-Encoding": "gzip"})
with urllib.request.urlopen(compressed) as r:
    print("gzip", r.headers["Content-Encoding"], gzip.decompress(r.read()))

opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
print("cookies", [opener.open(HTTP + "/cookies").read() for _ in range(2)])

opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://proxy.example:3128", "https": "http://proxy.example:3128"}))
print("no proxy", opener.open(HTTP + "/status/200").read(), opener.open(HTTPS + "/status/200").read())

connection = http.client.HTTPConnection(urllib.parse.urlsplit(HTTP).netloc, timeout=5)
for i in range(2):
    connection.request("PUT", f"/echo/{i}", iter([b"one", b"two"]), {"Transfer-Encoding": "chunked", "X-Key": "k"}, encode_chunked=True)
    r = connection.getresponse()
    print("kept alive", r.status, r.reason, r.version, r.read())
connection.request("POST", "/echo", io.BytesIO(b"a file"))
print("a file", connection.getresponse().read())
connection.request("HEAD", "/large/10")
print("head", connection.getresponse().read())

with urllib.request.urlopen(HTTP + "/large/2000") as r:
    first = r.readline()
    with urllib.request.urlopen(HTTP + "/status/200") as other:  # while the first is read
        print("two at once", other.read())
    print("large", len(first) + sum(map(len, r)))

for path in ("/slow", "/reset", "/bad-status", "/headers/50", "/headers/10000"):
    try:
        print(path, get(path, timeout=0.2))
    except Exception as e:
        print(path, type(e).__name__, e)
for url in ("http://127.0.0.1:9/x", "https://example.com/x", "http://169.254.169.254/latest/meta-data", HTTP + "/../x"):
    try:
        urllib.request.urlopen(url)
    except Exception as e:
        print(type(e).__name__, e)
try:
    urllib.request.urlopen(urllib.request.Request(HTTP, headers={"Host": "other.example"}))
except Exception as e:
    print(type(e).__name__, e.reason.errno is not None)
