#!/usr/bin/env python3
"""Writes the reference part of docs/cli.md from the program itself (`onnxtrain reference`).

    tools/docs_cli.py            write the page
    tools/docs_cli.py --check    exit 1 when the page is not up to date
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cli.md"
PROGRAM = ROOT / "build" / "release" / "onnxtrain"
BEGIN = "<!-- reference: written by `make docs-cli` from the option tables; edit those, not this -->\n"
END = "<!-- end of the reference -->\n"


def page_with(reference, page):
    """The page with its reference part replaced."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + "\n" + reference + "\n" + END + after


def main():
    reference = subprocess.run([PROGRAM, "reference"], capture_output=True, text=True, check=True).stdout
    old = PAGE.read_text()
    new = page_with(reference, old)
    if new == old:
        return 0
    if "--check" in sys.argv[1:]:
        print("docs/cli.md is not what the program says about itself: run `make docs-cli`", file=sys.stderr)
        return 1
    PAGE.write_text(new)
    print("written: docs/cli.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
