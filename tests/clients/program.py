"""The program that is tried."""

import json
import os
import subprocess
import sys
from pathlib import Path


def build() -> Path:
    """The program to try: given, or built here."""
    given = os.environ.get("TEAM_TABLE_BIN")
    if given:
        program = Path(given).absolute()
        if not program.is_file():
            sys.exit(f"TEAM_TABLE_BIN: no file at `{program}`")
        return program
    command = ["cargo", "build", "--release", "--bin", "team-table", "--message-format", "json-render-diagnostics"]
    top = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=top, stdout=subprocess.PIPE, text=True)
    built = [json.loads(line).get("executable") for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not any(built):
        sys.exit("`cargo build --release` failed")
    return Path(next(filter(None, reversed(built))))
