"""`gradsmith cache`: what is stored of generated modules, and removing it."""

from __future__ import annotations

import typer

app = typer.Typer(help="The generated modules and machine code that are kept on disk.", no_args_is_help=True,
                  rich_markup_mode=None)


@app.command()
def info() -> None:
    """Print where the cache is, and what it holds."""
    from gradsmith.cache import folder, size
    count, total = size()
    print(f"folder: {folder()}")
    print(f"files:  {count}")
    print(f"size:   {human_size(total)}")


@app.command()
def clear() -> None:
    """Remove all that this and older versions stored."""
    from gradsmith.cache import clear, folder
    count = clear()
    print(f"removed {count} file{'s' if count != 1 else ''} from {folder()}")


def human_size(count: int) -> str:
    """Bytes in the unit that fits: `1.5 MB`."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError
