# Forms of subprocess.run; natively (CPython 3.11) it prints the same.
import subprocess, sys
P = subprocess
echo = [sys.executable, "-c", "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(b'<' + d + b'>\\r\\n'); sys.stderr.buffer.write(b'\\xe4')"]
def tried(*a, **k):
    try: r = P.run(*a, **k); print(r.stdout, r.stderr, r.returncode, type(r).__name__)
    except Exception as e: print(type(e).__name__, getattr(e, "output", ""), "" if isinstance(e, (P.SubprocessError, OSError)) else str(e))
tried(echo, input=b"x", capture_output=True)
tried(echo, input="\u00e4", capture_output=True, encoding="latin-1")
tried(echo, input="\u00e4", capture_output=True, text=True, errors="replace")
tried(echo, stdin=P.DEVNULL, stdout=P.PIPE, stderr=P.STDOUT)
tried(echo, stdin=P.PIPE, stdout=P.PIPE, stderr=P.DEVNULL, text=True)
tried(echo, input="x", stdin=P.PIPE)
tried(echo, capture_output=True, stdout=P.PIPE)
tried(args=echo, input="x", capture_output=True)
tried(echo, input=b"x", capture_output=True, text=True)
tried([sys.executable, "-c", "raise SystemExit(3)"], check=True, stdout=P.PIPE, text=True)
tried([sys.executable, "-c", "print(1, flush=True); import time; time.sleep(100)"], timeout=0.7, stdout=P.PIPE)
tried(["./no-such"], capture_output=True)
r = P.run(echo, input=b"x" * 300000, capture_output=True); print(len(r.stdout))
