import io
import sys
import warnings

import requests
import urllib3
from requests.adapters import HTTPAdapter

HTTP, HTTPS = sys.argv[1:]
warnings.simplefilter("ignore")

r = requests.get(HTTP + "/redirect/2", params={"a": "b c"})
print("redirects", r.status_code, r.text, [x.status_code for x in r.history], r.url)
print("https", requests.get(HTTPS + "/echo", headers={"X-Key": "k"}, auth=("u", "p")).text)
print("gzip", requests.get(HTTP + "/gzip").json())
s = requests.Session()
print("cookies", s.get(HTTP + "/cookies").text, s.get(HTTP + "/cookies").text, sorted(s.cookies.keys()))
print("upload", requests.post(HTTP + "/multipart", data={"name": "ü"}, files={"file": ("a.bin", io.BytesIO(b"x" * 300_000))}).text)
print("json", requests.post(HTTP + "/echo", json={"a": 1}).text)
print("generator", requests.post(HTTP + "/echo", data=(c for c in [b"a", b"bc"])).text)
with requests.get(HTTP + "/large/3000", stream=True) as r:
    print("stream", sum(len(c) for c in r.iter_content(8192)))
print("lines", list(requests.get(HTTP + "/chunks/2", stream=True).iter_lines()))
print("unverified", requests.get(HTTPS + "/status/200", verify=False).status_code)
print("no proxy", requests.get(HTTPS + "/status/200", proxies={"https": "http://proxy.example:3128"}).status_code)

for path in ("/slow", "/reset", "/bad-status", "/headers/50", "/headers/10000"):
    try:
        print(path, requests.get(HTTP + path, timeout=0.2))
    except requests.RequestException as e:
        print(path, type(e).__name__)
try:
    requests.get("https://example.com/x")
except requests.ConnectionError as e:
    print(e)
try:
    requests.get(HTTP + "/status/503").raise_for_status()
except requests.HTTPError as e:
    print(e)
s.mount("http://", HTTPAdapter(max_retries=urllib3.Retry(total=1, status_forcelist=[503], backoff_factor=0.01)))
try:
    s.get(HTTP + "/status/503")
except requests.exceptions.RetryError:
    print("retried")
p = urllib3.PoolManager()
print("urllib3", p.request("GET", HTTP + "/echo").data, p.request("POST", HTTPS + "/multipart", fields={"a": "b"}).data)
