"""`make live`: serve, rebuild after an edit, name the line of a failing page, and go on."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
import tiny


def wait_for(test, what, log, seconds=150):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = test()
        if value:
            return value
        time.sleep(0.1)
    pytest.fail(f"no {what} in {seconds} s; printed:\n{log.read_text()}")


def test_edit_is_shown_and_a_failing_page_is_named(tmp_path):
    page = "# Title\n\n```{{code-cell}}\n{}\n```\n"
    folder = tiny.write_site(tmp_path, {"a.md": tiny.notebook(page.format("print('fir' + 'st')"))})
    source, log = folder / "docs/a.md", folder / "log"
    arguments = [sys.executable, "-m", "_ext.site.live", "docs", "build", "-c", ".", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs"), "PYTHONUNBUFFERED": "1"}
    with log.open("w") as out:
        server = subprocess.Popen(arguments, cwd=folder, env=environment, stdout=out, stderr=out, start_new_session=True)
    try:
        wait_for(lambda: "watching docs, conf.py" in log.read_text(), "server", log)
        address = log.read_text().split("built in ")[1].split(": ")[1].split()[0]

        def shows(text):
            try:
                with urllib.request.urlopen(f"{address}/a.html", timeout=5) as answer:
                    return text in answer.read().decode()
            except (urllib.error.URLError, ConnectionError):
                return False

        wait_for(lambda: shows("first"), "first page", log)
        assert shows("websocket-reload")
        time.sleep(0.5)  # the watcher starts with the server

        source.write_text(tiny.notebook(page.format("1 / 0")))
        wait_for(lambda: "not built" in log.read_text(), "failure", log)
        assert "docs/a.md:12: ERROR: cell failed: ZeroDivisionError" in log.read_text()
        assert shows("first"), "the last good site is gone"

        source.write_text(tiny.notebook(page.format("print('sec' + 'ond')")))
        wait_for(lambda: shows("second"), "second page", log)
        assert log.read_text().count("[live] not built") == 1
    finally:
        os.killpg(server.pid, signal.SIGINT)
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            raise
