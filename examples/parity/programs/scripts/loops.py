"""Starts programs in an event loop."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT


def python(text, *args, **more):
    return asyncio.create_subprocess_exec(sys.executable, "-c", text, *args, **more)


async def number(n):
    p = await python("import sys, time; time.sleep(int(sys.argv[1]) / 20); print(sys.argv[1])", str(n), stdout=PIPE)
    return (await p.communicate())[0]


async def main():
    p = await python("import sys; print(sys.stdin.read().upper()); sys.exit(2)", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    print(await p.communicate(b"text"), p.returncode)

    p = await asyncio.create_subprocess_shell("for i in 1 2 3; do echo line $i; done; exit 3", stdout=PIPE)
    async for line in p.stdout:
        print(line)
    print(await p.wait(), p.returncode)

    text = b"x" * 200_000
    copy = "import sys; t = sys.stdin.buffer.read(); sys.stdout.buffer.write(t); sys.stderr.buffer.write(t)"
    p = await python(copy, stdin=PIPE, stdout=PIPE, stderr=STDOUT)
    out, err = await p.communicate(text)
    print(len(out), err)

    p = await python("import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)", stdin=PIPE, stdout=PIPE)
    for line in (b"one\n", b"two\n"):
        p.stdin.write(line)
        await p.stdin.drain()
        print(await p.stdout.readline())
    p.stdin.close()
    print(await p.stdout.read(), await p.wait())

    p = await python("import time; time.sleep(60)", stdout=DEVNULL)
    try:
        await asyncio.wait_for(p.communicate(), timeout=0.1)
    except asyncio.TimeoutError:
        p.kill()
        print("too slow", await p.wait())
    p = await python("import time; time.sleep(60)")
    p.terminate()
    print(await p.wait(), p.returncode)
    try:
        await asyncio.create_subprocess_exec("no-such-program")
    except FileNotFoundError as error:
        print(error.filename)

    print(await asyncio.gather(number(2), number(1)))
    p = await python("import time; time.sleep(0.1)")
    print(await asyncio.gather(p.wait(), asyncio.to_thread(sum, [1, 2])))


asyncio.run(main())
