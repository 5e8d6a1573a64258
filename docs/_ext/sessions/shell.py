"""An IPython shell without a kernel: what a cell prints, shows and raises is kept as notebook outputs."""

import base64
import io
import json
import warnings

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

SVG = "image/svg+xml"
SETTINGS = {
    "HistoryManager": {"enabled": False},
    "InteractiveShell": {"xmode": "Minimal", "colors": "nocolor"},  # an error is one line: its type and message
    "InlineBackend": {
        "figure_formats": {"svg"},
        # No date in the file and no random names, so that two builds are equal.
        "rc": {"svg.hashsalt": "page"},
        "print_figure_kwargs": {"bbox_inches": "tight", "metadata": {"Date": None}},
    },
}


class TooMuchOutput(BaseException):
    """A cell printed more than a page may hold; not an Exception, so that a page's own handlers let it pass."""


class Outputs:
    """The outputs of the running item, in the order they came, as nbformat dictionaries."""

    def __init__(self, limit):
        self.limit = limit  # bytes a page
        self.used = 0
        self.current = []
        self.displays = {}  # display id -> outputs shown under it
        self.updated = False
        self._clear_next = False

    def start(self):
        """Forget the last item's outputs; give the list that the next one fills."""
        self.current, self._clear_next = [], False
        return self.current

    def stream(self, name, text):
        """Add text to `stdout` or `stderr`; raises TooMuchOutput past the limit."""
        text = plain(text)
        if not text:
            return
        self._add(len(text.encode()))
        if self.current and self.current[-1].get("name") == name:
            self.current[-1]["text"] += text
        else:
            self.current.append({"output_type": "stream", "name": name, "text": text})

    def show(self, kind, data, metadata, display_id=None, **more):
        """Add a display or a value."""
        data = {key: base64.b64encode(value).decode() if isinstance(value, bytes) else value for key, value in data.items()}
        output = {"output_type": kind, "data": plain(data), "metadata": plain(metadata or {}), **more}
        self._add(sum(len(value) for value in data.values() if isinstance(value, str)))
        self.current.append(output)
        if display_id:
            self.displays.setdefault(display_id, []).append(output)

    def update(self, data, metadata, display_id):
        """Change what was shown under an id, wherever it stands."""
        for output in self.displays.get(display_id, ()):
            output.update(data=plain(data), metadata=plain(metadata or {}))
            self.updated = True

    def clear(self, wait):
        """Take back what the cell has shown: now, or when it shows something next."""
        if wait:
            self._clear_next = True
        else:
            self.current.clear()

    def error(self, kind, message, lines):
        """Add an exception."""
        self.current.append(plain({"output_type": "error", "ename": kind, "evalue": message, "traceback": lines}))

    def _add(self, size):
        if self._clear_next:
            self.current.clear()
            self._clear_next = False
        self.used += size
        if self.used > self.limit:
            raise TooMuchOutput(f"the page has more than {self.limit:,} bytes of output")


def plain(value):
    """Give `value` as JSON holds it: no object of a page's own classes leaves its process.

    Raises TypeError or UnicodeEncodeError, in the page's own code, for what a notebook cannot hold.
    """
    text = json.dumps(value, ensure_ascii=False)
    text.encode()
    return json.loads(text)


class Stream(io.TextIOBase):
    """A text stream into Outputs; `fileno` is where C code and child processes write."""

    encoding = "utf-8"

    def __init__(self, outputs, name, fd):
        self.outputs, self.name, self.fd = outputs, name, fd

    def fileno(self):
        return self.fd

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.outputs.stream(self.name, text)
        return len(text)


class _Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, *, transient=None, update=False, **kwargs):
        display_id = (transient or {}).get("display_id")
        if update:
            self.shell.outputs.update(data, metadata, display_id)
        else:
            self.shell.outputs.show("display_data", data, metadata, display_id)

    def clear_output(self, wait=False):
        self.shell.outputs.clear(wait)


class _Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.outputs.show("execute_result", format_dict, md_dict, execution_count=self.prompt_count)

    def finish_displayhook(self):
        pass


class _Formatter(DisplayFormatter):
    """Give each figure a text alternative, read off the figure."""

    def format(self, value, *args, **kwargs):
        data, metadata = super().format(value, *args, **kwargs)
        if SVG in data and hasattr(value, "axes") and hasattr(value, "savefig"):
            from _ext.pictures.plots import describe

            metadata[SVG] = {**metadata.get(SVG, {}), "alt": describe(value)}
        return data, metadata


class Shell(InteractiveShell):
    """The shell of one page; `outputs` is set by the process that runs the page."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)
    outputs = None

    def init_display_formatter(self):
        self.display_formatter = _Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    def ask_exit(self):
        """Let `exit()` end the cell as `sys.exit()` does."""
        raise SystemExit

    def _showtraceback(self, etype, evalue, stb):
        self.outputs.error(etype.__name__, str(evalue), stb)


def warm():
    """Make the shell, once a process, and let it run a cell: before the forks this costs every page nothing."""
    if Shell.initialized():
        return Shell.instance()
    shell = Shell.instance(config=Config(SETTINGS))
    shell.run_cell("pass", store_history=False)
    shell.display_formatter.format(0)
    return shell


def plain_warnings():
    """Let a warning name its kind and its message only: its file and line are this machine's."""
    warnings.formatwarning = lambda message, category, *_: f"{category.__name__}: {message}\n"
