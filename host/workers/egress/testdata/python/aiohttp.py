import asyncio
import sys

import aiohttp

HTTP, HTTPS = sys.argv[1:]


async def main():
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as s:

        async def text(url, method="GET", **more):
            async with s.request(method, url, **more) as r:
                return await r.text()

        async with s.get(HTTP + "/redirect/2") as r:
            print("redirects", r.status, await r.text(), len(r.history))
        print("https", await text(HTTPS + "/echo", headers={"X-Key": "k"}))
        async with s.get(HTTP + "/gzip") as r:
            print("gzip", await r.json())
        print("cookies", await text(HTTP + "/cookies"), await text(HTTP + "/cookies"))
        form = aiohttp.FormData()
        form.add_field("name", "n")
        form.add_field("file", b"x" * 100_000, filename="a")
        print("upload", await text(HTTP + "/multipart", "POST", data=form))
        print("json", await text(HTTP + "/echo", "POST", json={"a": 1}))
        async with s.get(HTTP + "/large/3000") as r:
            print("stream", sum([len(c) async for c in r.content.iter_chunked(8192)]))
        print("gather", await asyncio.gather(*(text(f"{HTTP}/echo/{i}") for i in range(3))))
        for url in (HTTP + "/slow", HTTP + "/reset", HTTP + "/bad-status", "https://example.com/"):
            try:
                await text(url, timeout=aiohttp.ClientTimeout(total=0.3))
            except (TimeoutError, aiohttp.ClientError) as e:
                print(type(e).__name__, e)


asyncio.run(main())
