"""`hornbeam schema`: look at schemas."""

from __future__ import annotations

from typing import Annotated

import typer

from hornbeam.commands.options import JsonOption, print_json

app = typer.Typer(help="Look at schemas.", no_args_is_help=True)


@app.command("show")
def schema_show(
    name: Annotated[str, typer.Argument(help="A seed schema or a file.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Print a schema, whatever form it is written in."""
    from hornbeam.schema import attribute_lines, entity_lines, load_schema, relation_lines

    schema = load_schema(name)
    if as_json:
        print_json(schema.to_dict())
        return
    print(f"{schema.name}, version {schema.version}")
    for title, lines in (
        ("Entity types", entity_lines(schema)),
        ("Relation types (head, tail)", relation_lines(schema)),
        ("Attribute types", attribute_lines(schema)),
    ):
        print(f"\n{title} ({len(lines)}):")
        print("\n".join(f"  {line}" for line in lines))


@app.command("check")
def schema_check(file: Annotated[str, typer.Argument(help="A schema file.", show_default=False)]) -> None:
    """Say whether a schema file can be used; one line of what is wrong otherwise."""
    from hornbeam.schema import load_schema

    schema = load_schema(file)
    print(
        f"{file}: {len(schema.entity_types)} entity types, {len(schema.relation_types)} relation types, "
        f"{len(schema.attribute_types)} attribute types"
    )


@app.command("list")
def schema_list() -> None:
    """Name the seed schemas."""
    from hornbeam.schema import seed_schemas

    print("\n".join(seed_schemas()))
