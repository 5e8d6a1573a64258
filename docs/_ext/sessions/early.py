"""Sphinx extension, listed first: start the warm process while Sphinx loads the others."""

from _ext.sessions import server


def setup(app):
    if str(app.config.overrides.get("sessions_run", True)).lower() not in {"0", "false"}:
        server.start_for(app.srcdir, app.doctreedir)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
