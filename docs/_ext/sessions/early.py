"""Sphinx extension, listed first: start the warm process while Sphinx loads the others."""

from _ext.sessions import server


def setup(app):
    app.add_config_value("sessions_run", True, "env", types=(bool,))  # False: read and draw, run nothing
    if app.config.sessions_run:
        server.start_for(app.srcdir, app.doctreedir)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
