"""Say in one line why this Python cannot build the site; written so that any Python 3 can read it."""

import platform
import sys

OLDEST = (3, 11)


def refusal(version, system, machine):
    """Give the reason, or None: `version` as sys.version_info, the others as the platform module names them."""
    if version[:2] < OLDEST:
        return "Python {}.{} or newer is needed, this is {}.{}; try: make html PYTHON=python3.11".format(*OLDEST + tuple(version[:2]))
    if system == "Darwin" and machine == "x86_64":
        return "torch has no wheel for Intel Macs; use Linux, Windows or an Apple silicon Mac"
    return None


if __name__ == "__main__":
    reason = refusal(sys.version_info, platform.system(), platform.machine())
    if reason:
        sys.stderr.write("cannot build the site: " + reason + "\n")
        sys.exit(1)
