"""`hornbeam serve`, `mcp` and `keys`: indexes for other programs, and who may use them."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from hornbeam.commands.options import (
    ConfigOption,
    DeviceOption,
    IndexOption,
    JsonOption,
    ModelOption,
    SetOption,
    quiet_libraries,
    settings_of,
)
from hornbeam.printing import print_json, say

if TYPE_CHECKING:
    from socket import socket

    from hornbeam.serve.keys import Key

KeysOption = Annotated[
    Path | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        help="Of API keys, as hashes; default: keys.json in the user's configuration folder.",
        show_default=False,
    ),
]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
#: A name, an address, or an IPv6 address as `urlsplit` gives it.
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?|[0-9a-f:.]*:[0-9a-f:.]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def serve(
    index_directories: Annotated[
        list[str],
        typer.Option(
            "--index",
            metavar="[NAME=]DIR",
            help="An index and the name that it is served under (default: the folder's); repeatable.",
            show_default=False,
        ),
    ],
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 8080,
    keys: KeysOption = None,
    anonymous: Annotated[
        bool,
        typer.Option("--allow-anonymous", help="Let everybody read who can connect, on any --host."),
    ] = False,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--cors-origin",
            metavar="ORIGIN",
            help="A web site whose pages may call, e.g. https://example.org; repeatable.",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
) -> None:
    """Serve indexes over HTTP: questions streamed, searches, the graph, versions, OpenAI's chat interface."""
    directories = _named(index_directories)
    sites = [_origin(one) for one in origins or ()]
    settings = settings_of(config, changes, {"model.path": model, "device": device})
    quiet_libraries()
    try:
        import uvicorn

        from hornbeam.serve.app import create_app
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    import logging
    import sys

    from hornbeam.errors import UsageError
    from hornbeam.llm.opening import open_model
    from hornbeam.serve.indexes import open_indexes
    from hornbeam.serve.keys import KeyRing, default_keys_path
    from hornbeam.serve.server import Server

    ring = KeyRing(keys or default_keys_path())
    if host not in _LOOPBACK and not ring.keys() and not anonymous:
        raise UsageError(
            f"--host {host} can be reached by others, and {ring.path} holds no API key: add one with "
            "'hornbeam keys add', or let everybody read with --allow-anonymous"
        )
    listening = _listen(host, port)
    try:
        indexes = open_indexes(directories, settings)
        server = Server(indexes, open_model(settings), settings, ring, loopback=host in _LOOPBACK)
        app = create_app(server, sites)
        logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
        logging.getLogger("hornbeam.serve").setLevel(logging.INFO)
        where = f"http://{'[' + host + ']' if ':' in host else host}:{listening.getsockname()[1]}"
        say(f"serving {', '.join(indexes)} on {where}", file=sys.stderr, flush=True)
        settled = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
            timeout_keep_alive=30,
        )
        with suppress(KeyboardInterrupt):  # Ctrl-C is how a server ends; it has ended in order by now
            uvicorn.Server(settled).run(sockets=[listening])
    finally:
        listening.close()


def mcp(
    index_directory: IndexOption,
    model: ModelOption = None,
    device: DeviceOption = None,
    config: ConfigOption = None,
    changes: SetOption = None,
) -> None:
    """Serve one index to a program that starts this one, as tools of the Model Context Protocol."""
    settings = settings_of(config, changes, {"model.path": model, "device": device})
    quiet_libraries()
    try:
        from hornbeam.serve.mcp_server import create_mcp_server
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    from hornbeam.answer.session import open_session

    with open_session(index_directory, settings) as session:
        create_mcp_server(session, settings.serve.deadline_s).run("stdio")


app = typer.Typer(help="API keys of `hornbeam serve`.", no_args_is_help=True)


@app.command("add")
def keys_add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is.", show_default=False)],
    read: Annotated[
        list[str] | None,
        typer.Option(
            "--read",
            metavar="INDEX",
            help="May ask and search this index; * for all; repeatable. Default without --operate: *.",
            show_default=False,
        ),
    ] = None,
    operate: Annotated[
        list[str] | None,
        typer.Option(
            "--operate",
            metavar="INDEX",
            help="May also promote and roll back; * for all; repeatable.",
            show_default=False,
        ),
    ] = None,
    keys: KeysOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key and print it, this once: only its hash is kept."""
    from hornbeam.serve.keys import ANY, KeyRing, default_keys_path

    readable = read or ([] if operate else [ANY])
    key, secret = KeyRing(keys or default_keys_path()).add(name, readable, operate or [])
    if as_json:
        print_json({"key": secret} | _told(key))
    else:
        say(secret)


@app.command("list")
def keys_list(keys: KeysOption = None, as_json: JsonOption = False) -> None:
    """The keys, without what they are."""
    from hornbeam.serve.keys import KeyRing, default_keys_path

    found = KeyRing(keys or default_keys_path()).keys()
    if as_json:
        print_json({"keys": [_told(key) for key in found]})
        return
    for key in found:
        made = time.strftime("%Y-%m-%d", time.localtime(key.created))
        scopes = {"read": key.read, "operate": key.operate}
        told = "; ".join(f"{scope} {', '.join(names)}" for scope, names in scopes.items() if names)
        say(f"{key.key_id}  {made}  {key.name}: {told}")
    if not found:
        say("no keys")


@app.command("remove")
def keys_remove(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `keys list` shows it.", show_default=False)],
    keys: KeysOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a key back; a server that runs heeds it at once."""
    from hornbeam.serve.keys import KeyRing, default_keys_path

    removed = KeyRing(keys or default_keys_path()).remove(key_id)
    if as_json:
        print_json({"removed": _told(removed)})
    else:
        say(f"removed {removed.key_id}, {removed.name}")


def _not_installed(error: ModuleNotFoundError) -> Exception:
    from hornbeam.errors import UsageError

    return UsageError(
        f"serving needs {error.name}, which is not installed; run \"pip install 'hornbeam[serve]'\""
    )


def _told(key: Key) -> dict[str, object]:
    return key.model_dump(exclude={"sha256"})


def _named(given: list[str]) -> dict[str, Path]:
    directories: dict[str, Path] = {}
    for one in given:
        name, equals, directory = one.partition("=")
        path = Path(directory if equals else one)
        if not equals:
            name = path.resolve().name
        if not _NAME.fullmatch(name):
            raise typer.BadParameter(
                f"'{name}' is no name for an index (letters, digits, '.', '_', '-'); give one: NAME={path}",
                param_hint="--index",
            )
        if name in directories:
            raise typer.BadParameter(
                f"two indexes are named '{name}'; give one: NAME=DIR", param_hint="--index"
            )
        directories[name] = path
    return directories


def _origin(given: str) -> str:
    """As browsers send it: scheme, host and a port that is not the scheme's own; no path."""
    parts = urlsplit(given.strip())
    try:
        port = parts.port
    except ValueError:
        port = -1
    host = parts.hostname or ""
    rest = parts.path.rstrip("/") or parts.query or parts.fragment or parts.username is not None
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host) or rest or port == -1:
        raise typer.BadParameter(
            f"'{given}' is no origin; write scheme, host and port, e.g. https://example.org:8443",
            param_hint="--cors-origin",
        )
    usual = {"http": 80, "https": 443}[parts.scheme]
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port in (None, usual) else f":{port}")


def _listen(host: str, port: int) -> socket:
    import socket

    from hornbeam.errors import UsageError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
