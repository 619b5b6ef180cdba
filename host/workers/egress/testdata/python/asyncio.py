import asyncio
import concurrent.futures
import sys
import time
from urllib.parse import urlsplit

HTTP, HTTPS = map(urlsplit, sys.argv[1:])


async def get(url, path, ssl=None):
    reader, writer = await asyncio.open_connection(url.hostname, url.port, ssl=ssl)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()
    status = await reader.readline()
    while (await reader.readline()).strip():
        pass
    body = await reader.read()
    writer.close()
    await writer.wait_closed()
    return status, body


async def main():
    print(await asyncio.gather(get(HTTP, "/chunks/2"), get(HTTPS, "/status/404", True), get(HTTP, "/redirect/1")))
    began = time.monotonic()
    try:
        async with asyncio.timeout(0.1):
            await get(HTTP, "/slow")
    except TimeoutError:
        print("late", time.monotonic() - began < 5)
    try:
        await asyncio.open_connection("db.example.com", 5432)
    except OSError as e:
        print(e.strerror)
    print(await asyncio.to_thread(sum, [1, 2]))
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        print(await asyncio.gather(*(loop.run_in_executor(pool, pow, 2, i) for i in range(4))))
    queue = asyncio.Queue(1)

    async def produce():
        for i in range(3):
            await queue.put(i)
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        group.create_task(produce())
        print([await queue.get() for _ in range(3)])


asyncio.run(main())
try:
    asyncio.run(asyncio.Event().wait())
except RuntimeError as e:
    print(e)
