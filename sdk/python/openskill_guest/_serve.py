"""From standard input to standard output."""

import io
import sys
import traceback

from ._call import ROOT, Call, write_log
from ._errors import INTERNAL, Failure
from ._read import read_call
from ._types import typed
from ._write import check_object, encode


def serve(run, kind=dict):
    """Reads the call from standard input, has run(call, input) answer it, prints the
    answer and gives the exit code: 0 for success, 1 for an error. `kind` is the type of
    the input, a dataclass for instance. What run prints goes to standard error."""
    out = sys.stdout
    sys.stdout = sys.stderr  # what is printed must not get into the answer
    try:
        return _serve(sys.stdin.buffer.read, out.buffer, sys.stderr, ROOT, run, kind)
    finally:
        sys.stdout = out


def serve_on(given, run, kind=dict, root=None, logs=None):
    """serve for tests: takes standard input as bytes, gives the exit code and what is
    printed as bytes. `root` is the folder with data and work, None where neither is
    granted; `logs` a text stream in the place of standard error."""
    out = io.BytesIO()
    code = _serve(lambda: given, out, io.StringIO() if logs is None else logs, root, run, kind)
    return code, out.getvalue()


def rehearse(run, sample, kind=dict):
    """Has run answer an input that nobody sent, and throws the answer away. Before
    serve, a host does it once for all calls of a skill, and each of them finds made
    what is made at a first use. The call has no files, and run must not depend on time
    or chance in it."""
    out = sys.stdout
    sys.stdout = io.StringIO()
    try:
        serve_on(encode({"input": sample}), run, kind)
    finally:
        sys.stdout = out


def _serve(read, out, logs, root, run, kind):
    call = Call(root=root, logs=logs)
    try:
        try:
            call.skill_id, call.trace_id, given = read_call(read())
            data = run(call, typed(given, kind))
            check_object(data)
            answer, code = b'{"success":true,"data":%s,"error":null}\n' % encode(data, "data"), 0
        except Failure:
            raise
        # SystemExit too: a skill ends by what it returns or raises.
        except (Exception, SystemExit) as error:
            tell(call, error)
            raise Failure(
                INTERNAL, "the skill failed; its standard error says why", {"reason": "failed"}
            ) from None
    except Failure as failure:
        answer, code = b'{"success":false,"data":null,"error":%s}\n' % fault(call, failure), 1
    try:
        out.write(answer)
        out.flush()
    except OSError:
        return 1  # nobody reads it
    return code


def tell(call, error):
    """The exception and its traceback, for operators."""
    try:
        text = str(error)
    except Exception:
        text = type(error).__name__  # it cannot be shown
    call.error("uncaught: " + text)
    try:
        write_log(call._logs, "".join(traceback.format_exception(type(error), error, error.__traceback__)))
    except Exception:
        pass  # nor its traceback


def fault(call, failure):
    """The error of an answer as JSON."""
    error = {"code": failure.code, "message": failure.message}
    if failure.details is not None:
        error["details"] = failure.details
    try:
        if not isinstance(failure.code, str) or not failure.code or not isinstance(failure.message, str):
            raise TypeError("a Failure needs a code and a message, which are text")
        encode(failure.details, "details")
        return encode(error, "error")
    except Failure as why:
        return encode({"code": why.code, "message": why.message, "details": why.details})
    except Exception as why:
        tell(call, why)
        return encode(
            {"code": INTERNAL, "message": "the skill failed; its standard error says why", "details": {"reason": "failed"}}
        )
