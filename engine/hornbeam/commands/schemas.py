"""`hornbeam schema`: look at schemas, compare and convert them; `evolution` beside it lets them grow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hornbeam.commands import evolution
from hornbeam.commands.options import ConfigOption, JsonOption, SetOption, settings_of
from hornbeam.printing import print_json, say

app = typer.Typer(help="Look at schemas, compare them, let them grow.", no_args_is_help=True)
app.add_typer(evolution.app)


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
    say(f"{schema.name}, version {schema.version}")
    for title, lines in (
        ("Entity types", entity_lines(schema)),
        ("Relation types (head, tail)", relation_lines(schema)),
        ("Attribute types", attribute_lines(schema)),
    ):
        say(f"\n{title} ({len(lines)}):")
        say("\n".join(f"  {line}" for line in lines))


@app.command("check")
def schema_check(file: Annotated[str, typer.Argument(help="A schema file.", show_default=False)]) -> None:
    """Say whether a schema file can be used; one line of what is wrong otherwise."""
    from hornbeam.schema import load_schema

    schema = load_schema(file)
    say(
        f"{file}: {len(schema.entity_types)} entity types, {len(schema.relation_types)} relation types, "
        f"{len(schema.attribute_types)} attribute types"
    )


@app.command("list")
def schema_list() -> None:
    """Name the seed schemas."""
    from hornbeam.schema import seed_schemas

    say("\n".join(seed_schemas()))


@app.command("diff")
def schema_diff(
    schemas: Annotated[
        list[str] | None,
        typer.Argument(metavar="[A B]", help="Two schema files or seed schemas.", show_default=False),
    ] = None,
    index_directory: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="DIR",
            help="Instead: the index's schema and what it would be with all proposals that pass the gates.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what differs between two schemas, type by type."""
    names = schemas or []
    if len(names) != (2 if index_directory is None else 0):
        raise typer.BadParameter("give two schemas, or --index alone", param_hint="A B")
    from hornbeam.schema import difference, load_schema

    if index_directory is None:
        before, after = (load_schema(name) for name in names)
    else:
        from hornbeam.evolve.accepting import grown_schema

        before, after = grown_schema(index_directory, settings_of(config, changes, {}).evolve)
    found = difference(before, after)
    if as_json:
        sides = [
            {"name": each.name, "version": each.version, "hash": each.hash()} for each in (before, after)
        ]
        print_json({"before": sides[0], "after": sides[1], "changes": [each.model_dump() for each in found]})
        return
    say(f"--- {before.name}, version {before.version}\n+++ {after.name}, version {after.version}")
    say("\n".join(line for change in found for line in change.lines()) or "the same types")


@app.command("import")
def schema_import(
    file: Annotated[
        str, typer.Argument(help="Flat lists, ontology JSON, BRAT annotation.conf.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option("--output", metavar="FILE", help="Where the schema is written.", show_default=False),
    ],
) -> None:
    """Write a schema that has another form in Hornbeam's own, to read and to edit."""
    from hornbeam.schema import load_schema
    from hornbeam.schema.load import write_schema

    schema = load_schema(file)
    write_schema(schema, output)
    say(
        f"{output}: {len(schema.entity_types)} entity types, {len(schema.relation_types)} relation types, "
        f"{len(schema.attribute_types)} attribute types"
    )
