import asyncio
import io
import sys

import httpx

HTTP, HTTPS = sys.argv[1:]

print("plain", httpx.get(HTTP + "/redirect/2", follow_redirects=True).text, httpx.get(HTTPS + "/echo").text, httpx.get(HTTP + "/gzip").json())
with httpx.Client(base_url=HTTP) as c:
    print("cookies", c.get("/cookies").text, c.get("/cookies").text)
    print("upload", c.post("/multipart", data={"name": "n"}, files={"file": ("a", io.BytesIO(b"x" * 100_000))}).text)
    with c.stream("GET", "/large/3000") as r:
        print("stream", sum(len(x) for x in r.iter_bytes()))
for path in ("/slow", "/reset", "/bad-status"):
    try:
        httpx.get(HTTP + path, timeout=0.2 if path == "/slow" else 5)
    except httpx.HTTPError as e:
        print(path, type(e).__name__)
try:
    httpx.get("https://example.com/")
except httpx.HTTPError as e:
    print(e)


async def main():
    async with httpx.AsyncClient() as c:
        all = await asyncio.gather(*(c.get(base + f"/echo/{i}") for i, base in enumerate([HTTP, HTTPS, HTTP])))
        print("async", [r.text for r in all])
        async with c.stream("GET", HTTP + "/large/3000") as r:
            print("stream", sum([len(x) async for x in r.aiter_bytes()]))
        for url in (HTTP + "/slow", "https://example.com/"):
            try:
                await c.get(url, timeout=0.2 if url.endswith("/slow") else 5)
            except httpx.HTTPError as e:
                print(type(e).__name__, e)


asyncio.run(main())
