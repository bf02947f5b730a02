"""Install the clients, at the versions that were tried, into a cache folder; what is there already is left alone."""

import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("TEAM_TABLE_CLIENTS") or Path.home() / ".cache" / "team-table-clients").absolute()
MODULES = CACHE / "node_modules"
SYSTEM = platform.system().lower()
PLATFORM = f"{SYSTEM}-{'arm64' if platform.machine() in ('aarch64', 'arm64') else 'x64'}"

# client -> npm package, version (a prefix of it will do), and the file below node_modules that we start
NPM = {
    "claude": ("@anthropic-ai/claude-code", "2.1.332", f"@anthropic-ai/claude-code-{PLATFORM}/claude"),
    "codex": ("@openai/codex", "0.171.0", f"@openai/codex-{PLATFORM}/vendor/*/bin/codex"),
    "gemini": ("@google/gemini-cli", "0.61.0", "@google/gemini-cli/bundle/gemini.js"),
    "opencode": ("opencode-ai", "1.18.33", f"opencode-{PLATFORM}/bin/opencode"),
    "copilot": ("@github/copilot", "1.0.102", f"@github/copilot-{PLATFORM}/copilot"),
    # no client, but what tests/conformance/run runs
    "conformance": (
        "@modelcontextprotocol/conformance", "0.2.0-alpha.12", "@modelcontextprotocol/conformance/dist/index.js",
    ),
    # the inspector, the TypeScript clients and the suite want a newer Node than many machines have
    "node": (f"node-{PLATFORM}", "24", f"node-{PLATFORM}/bin/node"),
    "inspector": ("@modelcontextprotocol/inspector", "2.12.0", ".bin/mcp-inspector"),
    "typescript-sdk": ("@modelcontextprotocol/sdk", "1.32.2", "@modelcontextprotocol/sdk/package.json"),
    "typescript-client": ("@modelcontextprotocol/client", "2.4.0", "@modelcontextprotocol/client/package.json"),
}
# client -> requirement, and the distribution that shows that it is met
PYTHON = {
    "python-mcp-1": ("mcp<2", "mcp-1.*.dist-info"),
    "python-mcp-2": ("mcp>=2,<3", "mcp-2.*.dist-info"),
}
# program -> package of Debian, which is only unpacked, so that no service starts; and the file in it
DEBIAN = {"caddy": ("caddy", "usr/bin/caddy"), "nginx": ("nginx", "usr/sbin/nginx")}

UNREACHABLE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED"
    r"|\bE50[0-4]\b|NewConnectionError|ConnectTimeoutError|ReadTimeoutError|NameResolutionError|ProxyError"
    r"|from versions: none"  # how pip ends when no index answered
)


class NotInstalled(Exception):
    """A client could not be installed; `unreachable` if that is because no registry answered."""

    def __init__(self, why: str, unreachable: bool):
        super().__init__(why)
        self.unreachable = unreachable


def executable(client: str) -> Path | None:
    """The file to start, if this client is installed at the right version."""
    if client in DEBIAN:
        found = shutil.which(client, path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin")
        unpacked = CACHE / "debian" / DEBIAN[client][1]
        return Path(found) if found else unpacked if unpacked.is_file() else None
    if client in PYTHON:
        found = list((CACHE / client).glob(f"lib/python*/site-packages/{PYTHON[client][1]}"))
        return CACHE / client / "bin" / "python" if found else None
    package, version, path = NPM[client]
    try:
        text = (MODULES / package / "package.json").read_text()
    except OSError:
        return None
    if not re.search(rf'"version": *"{re.escape(version)}[."]', text):
        return None
    return next(MODULES.glob(path), None)


def install(client: str) -> Path:
    """The file to start, after installing the client if need be."""
    if client == "tmux":
        return _terminal()
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs may share one cache
        found = executable(client)
        if found is None:
            print(f"installing {client}", file=sys.stderr)
            (_venv if client in PYTHON else _unpack if client in DEBIAN else _npm)(client)
            found = executable(client)
    if found is None:
        raise NotInstalled(f"installed, but there is none for {PLATFORM}", unreachable=False)
    return found


def _terminal() -> Path:
    """tmux, which clients run in as in a person's terminal; by the system's own means where we may use them."""
    if not shutil.which("tmux") and shutil.which("apt-get") and os.geteuid() == 0:
        print("installing tmux", file=sys.stderr)
        for words in (["update", "-q"], ["install", "-qy", "--no-install-recommends", "tmux"]):
            subprocess.run(["apt-get", *words], stdin=subprocess.DEVNULL, capture_output=True)
    found = shutil.which("tmux")
    if not found:
        raise NotInstalled("there is no `tmux` on PATH", unreachable=True)
    return Path(found)


def _unpack(program: str) -> None:
    """What is in its package, beside the system."""
    package, _ = DEBIAN[program]
    if not shutil.which("apt-get"):
        raise NotInstalled(f"there is no `{program}` on PATH, and no `apt-get`", unreachable=True)
    with tempfile.TemporaryDirectory(prefix="team-table-deb-") as folder:
        if os.geteuid() == 0:
            subprocess.run(["apt-get", "update", "-q"], stdin=subprocess.DEVNULL, capture_output=True)
        apt = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package]
        done = subprocess.run(apt, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        files = list(Path(folder).glob("*.deb"))
        if not files:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise NotInstalled(f"apt-get could not download {package}: {why}", unreachable=True)
        _installer(["dpkg-deb", "--extract", str(files[0]), str(CACHE / "debian")])


def _npm(client: str) -> None:
    package, version, _ = NPM[client]
    options = ["--no-fund", "--no-audit", "--loglevel=error", "--save-exact", "--prefix", str(CACHE)]
    _installer(["npm", "install", *options, f"{package}@{version}"])


def _venv(client: str) -> None:
    folder = CACHE / client
    shutil.rmtree(folder, ignore_errors=True)
    _installer([sys.executable, "-m", "venv", str(folder)])
    _installer([str(folder / "bin" / "pip"), "install", "--disable-pip-version-check", PYTHON[client][0]])


def _installer(command: list[str]) -> None:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    except FileNotFoundError:
        raise NotInstalled(f"there is no `{command[0]}` on PATH", unreachable=False) from None
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"`{command[0]}` did not end within 10 minutes", unreachable=True) from None
    if done.returncode:
        said = done.stdout + done.stderr
        lines = [line for line in said.splitlines() if line.strip()] or ["no reason given"]
        raise NotInstalled(
            f"`{' '.join(command)}` failed: {lines[-1]}" if command[0] != "npm" else f"npm failed: {lines[0]}",
            unreachable=bool(UNREACHABLE.search(said)),
        )
