"""Runs one Python tool for Haft, one request at a time, on pipes the tool cannot reach by accident.

First message: a length, then as JSON the script, its entrypoint, the tools directory, the script's
own arguments, whether orphans are adopted, variables for the environment (null removes one) and
whether the arguments are passed by name. It may come long after the start: an idle process waits for
its tool.
Request: two lengths (context, arguments), then both as JSON.
Once the script is loaded: READY, so that Haft can tell whose end it was if no answer comes, or
READY_WITH_CHILDREN if the script started processes.
Answer: a kind, whether there may be child processes, three lengths (files, printed, body), then the
files as JSON, the text that the tool printed during the call, and the body as JSON; see KINDS. `files` is empty unless the tool loaded something new from the tools directory: Haft
replaces this process when one changes.
"""

import functools
import importlib.machinery
import importlib.util
import inspect
import io
import json
import os
import struct
import sys

SETUP = struct.Struct(">I")
REQUEST = struct.Struct(">II")
ANSWER = struct.Struct(">c?III")
RESULT, RAISED, NOT_JSON, NOT_LOADED = KINDS = b"R", b"E", b"J", b"L"
READY, READY_WITH_CHILDREN = b"+", b"*"
READ_BYTES = 65536
TRACEBACK_CHARS_MAX = 65536
MESSAGE_CHARS_MAX = 4096
PRINTED_CHARS_MAX = 65536
PR_SET_CHILD_SUBREAPER = 36

loaded = {}  # path: [modified (ns), size, inode], as they were just before the file was read
loop = None


def main():
    requests, answers = take_over_pipes()
    process = os.getpid()
    libc = load_libc()
    size = read_exactly(requests, SETUP.size)
    if size is None:
        return
    setup = read_exactly(requests, *SETUP.unpack(size))
    if setup is None:
        return
    script, entrypoint, tools_dir, arguments, adopts, variables, by_name = json.loads(setup)
    for name, value in variables:
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    adopts = adopts and adopt_orphans(libc)
    sys.argv[:] = [script, *arguments]
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
    call = failure = None
    try:
        watch_imports(tools_dir)
        call = caller(find(load(script), script, entrypoint), by_name)
    except Exception as error:
        failure = describe(error)
    end_copy(process)
    write(answers, READY_WITH_CHILDREN if may_have_children(adopts) else READY)
    reported = 0
    while True:
        request = read_request(requests)
        if request is None:
            return
        printed.clear()
        if failure:
            kind, body = NOT_LOADED, encode(failure).encode("utf-8", "replace")
        else:
            kind, body = answer(call, encode, *request)
        flush()
        end_copy(process)
        children = may_have_children(adopts)
        files = b""
        if len(loaded) != reported:
            reported = len(loaded)
            files = json.dumps(list(loaded.items())).encode()
        text = printed.text()
        head = ANSWER.pack(kind, children, len(files), len(text), len(body))
        write(answers, head + files + text + body)


def take_over_pipes():
    """Keeps the protocol's pipes for itself: what the tool, its C code or its children print goes
    to stderr, and what they read is empty."""
    requests, answers = os.dup(0), os.dup(1)  # Not inherited by programs the tool starts.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stderr.reconfigure(line_buffering=True, errors="backslashreplace")
    sys.stdout = sys.__stdout__ = PrintedStream(
        sys.stdout.detach(), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )

    def let_go():
        os.close(requests)
        os.close(answers)

    # A forked copy of the tool must neither answer nor keep the pipes open.
    os.register_at_fork(after_in_child=let_go)
    return requests, answers


class Printed:
    """The last part of what the tool printed during a call."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.parts, self.size, self.is_cut = [], 0, False

    def add(self, text):
        self.parts.append(text)
        self.size += len(text)
        if self.size > 2 * PRINTED_CHARS_MAX:
            kept = "".join(self.parts)[-PRINTED_CHARS_MAX:]
            self.parts, self.size, self.is_cut = [kept], len(kept), True

    def text(self):
        if not self.parts:
            return b""
        text = "".join(self.parts)
        if self.is_cut or len(text) > PRINTED_CHARS_MAX:
            # Whole lines only: half a line may hold half a secret, which redaction would miss.
            text = "..." + text[-PRINTED_CHARS_MAX:].partition("\n")[2]
        return text.encode("utf-8", "backslashreplace")


class PrintedStream(io.TextIOWrapper):
    """Standard output of the tool. It goes to stderr as well, where it survives the end of the process."""

    def write(self, text):
        written = super().write(text)
        printed.add(text)
        return written


printed = Printed()


def load_libc():
    """Loads the C library before there is a tool: that takes milliseconds."""
    try:
        import ctypes

        return ctypes.CDLL(None)
    except Exception:
        return None  # This Python was built without ctypes.


def adopt_orphans(libc):
    """Makes this process the parent of descendants that lose theirs, so that none gets out of sight."""
    try:
        return libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except Exception:
        return False  # Not Linux, or no C library.


def may_have_children(adopts):
    """Whether this process has children, dead ones included. One system call, without collecting."""
    if not adopts:
        return True
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end_copy(process):
    """Ends a forked copy of the tool that came back: its pipes are closed, and their numbers may be
    those of the tool's own files by now."""
    if os.getpid() != process:
        os._exit(0)


def flush():
    try:
        sys.stdout.flush()
    except Exception:
        pass  # The tool closed or replaced it, which is its own affair.


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Reads the source, never a cached .pyc: those tell two versions apart by the second and the
    size only, so a quick edit would go unnoticed."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        status = os.stat(path)
        loaded[path] = [status.st_mtime_ns, status.st_size, status.st_ino]
        return self.source_to_code(self.get_data(path), path)


def watch_imports(tools_dir):
    """Loads modules of the tools directory with SourceLoader, but not an environment inside it."""
    root = os.path.join(tools_dir, "")

    def is_watched(path):
        path = os.path.join(os.path.realpath(path), "")
        installed = path.startswith(os.path.join(sys.prefix, "")) or "site-packages" in path
        return path.startswith(root) and not installed

    finder = importlib.machinery.FileFinder.path_hook(
        (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        (SourceLoader, importlib.machinery.SOURCE_SUFFIXES),
        (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
    )

    def watched_finder(path):
        if not is_watched(path):
            raise ImportError(path)
        return finder(path)

    sys.path_hooks.insert(0, watched_finder)
    for path in [path for path in sys.path_importer_cache if is_watched(path)]:
        del sys.path_importer_cache[path]


def load(script):
    directory, file = os.path.split(script)
    sys.path.insert(0, directory)  # As if the script had been started itself.
    name = "haft_tool_" + os.path.splitext(file)[0]
    spec = importlib.util.spec_from_loader(name, SourceLoader(name, script), origin=script)
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find(module, script, entrypoint):
    function = getattr(module, entrypoint, None)
    if not callable(function):
        raise NoEntrypoint(f"`{script}` has no function `{entrypoint}`")
    if not (is_own(function, module, script) or is_defined(script, entrypoint)):
        raise ForeignEntrypoint(f"`{script}` does not define `{entrypoint}` itself")
    return function


class NoEntrypoint(Exception):
    pass


class ForeignEntrypoint(Exception):
    pass


def is_own(function, module, script):
    """Whether the script defines the function. An imported name is not an entrypoint: after `from
    subprocess import check_output`, any caller of that tool could run any program."""
    try:
        function = inspect.unwrap(function)
        while isinstance(function, functools.partial):
            function = inspect.unwrap(function.func)
        code = getattr(function, "__code__", None)
        if code is not None:
            return code.co_filename == script
        # A class of the script, or an object of one.
        kind = function if isinstance(function, type) else type(function)
        return kind.__module__ == module.__name__
    except Exception:
        return False  # Too odd to tell by its attributes.


def is_defined(script, entrypoint):
    """Whether the script has a `def` or a `class` of this name at its top level: a decorator may have put
    anything in its place."""
    import ast  # Only here: most entrypoints are plain functions.

    definitions = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
    with open(script, "rb") as file:
        nodes = [ast.parse(file.read())]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, definitions):
            nodes.extend(ast.iter_child_nodes(node))
        elif node.name == entrypoint:
            return True
    return False


def caller(function, by_name):
    """How the function wants to be called; `by_name` if its signature is the tool's schema. Otherwise a second parameter that has a default and another name
    than `context` is the tool's own affair."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = None
    if by_name:
        if any(parameter.name == "context" for parameter in parameters or ()):
            return lambda arguments, context: function(**arguments, context=json.loads(context))
        return lambda arguments, context: function(**arguments)
    if parameters is None:
        return lambda arguments, context: function(arguments)
    kinds = {parameter.kind for parameter in parameters}
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind == p.KEYWORD_ONLY and p.name == "context" for p in parameters):
        return lambda arguments, context: function(arguments, context=json.loads(context))
    if len(plain) > 1 and (plain[1].default is inspect.Parameter.empty or plain[1].name == "context"):
        return lambda arguments, context: function(arguments, json.loads(context))
    if plain or inspect.Parameter.VAR_POSITIONAL in kinds:
        return lambda arguments, context: function(arguments)
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return lambda arguments, context: function(**arguments)
    return lambda arguments, context: function()


def answer(call, encode, context, arguments):
    try:
        result = call(json.loads(arguments), context)
        if hasattr(result, "__await__"):
            result = wait_for(result)
    except (SystemExit, KeyboardInterrupt):
        raise  # The tool wants this process to end; Haft reports how it ended.
    except BaseException as error:
        return RAISED, encode(describe(error)).encode("utf-8", "replace")
    try:
        return RESULT, encode(result).encode()
    except (TypeError, ValueError, RecursionError) as error:
        problem = {"type": type(result).__name__, "message": text(error)[:MESSAGE_CHARS_MAX]}
        return NOT_JSON, encode(problem).encode("utf-8", "replace")


def wait_for(awaitable):
    global loop
    import asyncio  # Only here: it takes longer to load than everything else together.

    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    return loop.run_until_complete(awaitable)


def describe(error):
    kind = type(error)
    module = kind.__module__ if isinstance(kind.__module__, str) else "builtins"
    own = module in ("builtins", __name__) or module.startswith("haft_tool_")
    description = {
        "type": kind.__qualname__ if own else f"{module}.{kind.__qualname__}",
        "message": text(error)[:MESSAGE_CHARS_MAX],
        "traceback": trace(error)[-TRACEBACK_CHARS_MAX:],
    }
    if isinstance(error, SyntaxError) and isinstance(error.lineno, int):
        line, file = str(error.text or "").strip(), str(error.filename)
        description.update(message=str(error.msg), file=file, line=error.lineno, text=line)
    return description


def trace(error):
    import traceback

    try:
        report = traceback.TracebackException.from_exception(error)
        hide_own_frames(report)
        return "".join(report.format())
    except Exception:
        return ""  # The exception is too odd to be shown.


def text(error):
    try:
        return str(error)
    except Exception:
        return "(its text cannot be made)"


def hide_own_frames(report):
    """Leaves what the tool's author wrote: no frames of this runner, the importer or the loop."""
    loops = os.path.join(os.path.dirname(os.__file__), "asyncio", "")
    shown = [
        frame
        for frame in report.stack
        if not frame.filename.startswith(("<haft runner>", "<frozen importlib", loops))
    ]
    report.stack[:] = shown
    for linked in report.__cause__, report.__context__, *(getattr(report, "exceptions", None) or ()):
        if linked is not None:
            hide_own_frames(linked)


def read_exactly(pipe, size):
    """So many bytes and no more, or None when Haft wants nothing."""
    data = b""
    while len(data) < size:
        part = os.read(pipe, size - len(data))
        if not part:
            return None
        data += part
    return data


def read_request(pipe):
    """The context and the arguments, or None when Haft wants no more."""
    data = os.read(pipe, READ_BYTES)
    if not data:
        return None
    while len(data) < REQUEST.size:
        data += os.read(pipe, READ_BYTES)
    context_size, arguments_size = REQUEST.unpack_from(data)
    missing = REQUEST.size + context_size + arguments_size - len(data)
    if missing:
        parts = [data]
        while missing:
            part = os.read(pipe, min(missing, READ_BYTES))
            if not part:
                return None
            parts.append(part)
            missing -= len(part)
        data = b"".join(parts)
    middle = REQUEST.size + context_size
    return data[REQUEST.size : middle], str(data[middle:], "utf-8")


def write(pipe, data):
    written = os.write(pipe, data)
    if written < len(data):
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[os.write(pipe, rest) :]


main()
