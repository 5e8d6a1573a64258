"""The recorded messages: code, and the exact text that it raised on the torch of this record.

``records.jsonl`` begins with a line that names the torch version; each line after it is one record.  The records are
broader than the pages, which show the smallest code: every variant of a message that is known is here, so that a
change of wording is seen and no page loses a message.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

PATH = Path(__file__).with_name("records.jsonl")
CUT = " ..."  # a text that differs between builds is kept up to here


@dataclass(frozen=True)
class Record:
    """`code` raises `raises`, which is ``Type: message``; a text that ends in ``" ..."`` is the beginning of it.

    ``no error`` records code that raises nothing though one would expect it to.
    `build` is "cpu" where a build of torch for a GPU says something else.
    """

    id: str
    code: str
    raises: str
    build: str = ""

    def is_raised_as(self, text: str) -> bool:
        """Whether `text` is what this record says."""
        if self.raises.endswith(CUT):
            return text.startswith(self.raises.removesuffix(CUT))
        return text == self.raises


def here(records: list[Record]) -> list[Record]:
    """Return the records that the installed build of torch can show."""
    import torch

    cpu = not torch.backends.cuda.is_built() and not torch.backends.mps.is_built()
    return [record for record in records if cpu or record.build != "cpu"]


def read(path: Path = PATH) -> tuple[str, list[Record]]:
    """Return the torch version of the records, and the records."""
    first, *lines = path.read_text("utf-8").splitlines()
    return json.loads(first)["torch"], [Record(**json.loads(line)) for line in lines]


def write(version: str, records: list[Record], path: Path = PATH) -> None:
    """Write the records back, one a line."""
    lines = [{"torch": version}, *({key: value for key, value in asdict(record).items() if value} for record in records)]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
