"""The reports of a build and of an index, for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hornbeam.printing import on_one_line, say

_REJECTED_SHOWN = 20


def render_report(report: dict[str, Any], index: Path) -> None:
    """What `hornbeam index` did; the same figures as its --json."""

    documents, chunks = report["documents"], report["chunks"]
    say(
        f"documents    {documents['seen']} seen: {documents['indexed']} indexed, "
        f"{documents['unchanged']} unchanged, {documents['duplicates']} duplicates, "
        f"{len(documents['rejected'])} rejected"
        + "".join(
            f", {documents[what]} {what}"
            for what in ("changed", "moved", "removed", "excluded")
            if documents[what]
        )
    )
    _print_rejections(documents["rejected"])
    say(
        f"chunks       {chunks['total']}: {chunks['done']} done, {chunks['degraded']} degraded, "
        f"{chunks['failed']} failed ({chunks['reused']} from earlier runs"
        + (f", {chunks['reused_from_parent']} under an older schema" if chunks["reused_from_parent"] else "")
        + ")"
    )
    _print_lost_chunks(chunks)
    _print_serving(report["serving"], chunks["dropped"])
    communities = report["communities"]
    say(
        f"graph        {report['entities']} entities, {report['relations']} relations, "
        f"{report['attributes']} attributes"
    )
    say(
        f"tree         {communities['leaf']} communities on {communities['levels']} level(s), "
        f"coverage {communities['coverage']:.3f}, modularity {communities['modularity']:.3f}"
    )
    for unnamed in communities["unnamed"]:
        line = f"  unnamed    community {unnamed['community_id']}: {unnamed['reason']}; named by its keywords"
        say(line)
    _print_tokens(report["tokens"])
    seconds = report["seconds"]
    spent = ", ".join(f"{stage} {value:.1f}" for stage, value in seconds.items())
    say(f"seconds      {sum(seconds.values()):.1f} ({spent})")
    if report["tokens_per_second"]:
        say(f"throughput   {report['tokens_per_second']} output tokens a second")
    for stage, spent in report["model_time"].items():
        say(
            f"model idle   {spent['idle_share']:.1%} of {stage}: {spent['idle_seconds']:.1f} of "
            f"{spent['seconds']:.1f} s"
        )
    _print_cost(report["cost"])
    if report["proposals"] is not None:
        _print_proposals(report["proposals"], index)
    _print_gates(report["gates"])
    state = "promoted" if report["promoted"] else "kept, not promoted"
    unchanged = ", unchanged" if report["unchanged"] else ""
    say(f"version      {report['version']} ({state}{unchanged}) in {index}")


def render_status(status: dict[str, Any]) -> None:

    say(f"index        {status['index']}, version {status['version'] or 'none'}")
    say(
        f"documents    {status['documents']['indexed']} indexed, "
        f"{len(status['documents']['rejected'])} rejected"
    )
    _print_rejections(status["documents"]["rejected"])
    chunks = status["chunks"]
    states = ", ".join(
        f"{chunks[state]} {state}" for state in ("done", "degraded", "failed") if state in chunks
    )
    say(f"chunks       {chunks['known']}" + (f": {states} in the last build" if states else ""))
    _print_states(chunks.get("states", []))
    _print_serving(status["serving"], chunks.get("dropped", 0))
    if counts := status["counts"]:
        say(
            f"graph        {counts['entities']} entities, {counts['relations']} relations, "
            f"{counts['attributes']} attributes"
        )
        communities = status["communities"]
        say(
            f"tree         {communities['leaf']} communities on {communities['levels']} level(s), "
            f"coverage {communities['coverage']:.3f}"
        )
    _print_tokens(status["tokens"])
    if status["tokens_per_second"]:
        say(f"throughput   {status['tokens_per_second']} output tokens a second in the last build")
    if status["cost"]:
        _print_cost(status["cost"])
    _print_gates(status["gates"])
    if status["model"]:
        say(f"model        {status['model']['name']} by {status['model']['backend']}")


def _print_rejections(rejected: list[dict[str, str]]) -> None:
    for rejection in rejected[:_REJECTED_SHOWN]:
        say(f"  rejected   {on_one_line(rejection['path'])}: {rejection['reason']}")
    if len(rejected) > _REJECTED_SHOWN:
        say(f"  …          and {len(rejected) - _REJECTED_SHOWN} more; --json lists all")


def _print_lost_chunks(chunks: dict[str, Any]) -> None:
    """Why chunks are degraded or failed, and some of them with their place."""
    for reason, count in chunks["reasons"].items():
        say(f"  lost       {count} chunks: {reason}")
    for chunk in chunks["lost"]:
        place = f"{on_one_line(chunk['source'])}:{chunk['start']}-{chunk['end']}"
        say(f"             {place}: {chunk['state']} ({chunk['reason']})")


def _print_states(states: list[dict[str, Any]]) -> None:
    """Chunks by state, reason and rung of the ladder, where there is more to say than that all are done."""
    if len(states) < 2 and not any(row["reasons"] or row["rungs"] for row in states):
        return
    for row in states:
        lost = f", lost: {', '.join(row['reasons'])}" if row["reasons"] else ""
        tried = f", tried: {', '.join(row['rungs'])}" if row["rungs"] else ""
        say(f"             {row['chunks']} {row['state']}{lost}{tried}")


def _print_serving(serving: dict[str, Any] | None, dropped: int) -> None:
    """What servers did not guarantee, and which of them failed."""
    if dropped:
        say(f"  dropped    {dropped} items of answers that no grammar shaped")
    if serving is None:
        return
    if serving["enforces"] != "grammar":
        say(f"  served     by servers that enforce no grammar ({serving['enforces']})")
    for server in serving["servers"]:
        if server["faults"]:
            say(
                f"  faults     {server['url']}: {server['faults']} beside {server['answered']} answers, "
                f"the last: {server['last_fault']}"
            )


def _print_tokens(tokens: dict[str, dict[str, Any]]) -> None:
    for stage, usage in tokens.items():
        share = usage["cached"] / usage["prompt"] if usage["prompt"] else 0.0
        say(
            f"tokens       {stage}: {usage['calls']} calls, {usage['prompt']} prompt "
            f"({share:.0%} from cache), {usage['output']} output"
        )


def _print_cost(cost: dict[str, Any]) -> None:
    if cost.get("total") is not None:
        figures = (
            ("per_document", "a document"),
            ("per_1000_chunks", "for 1,000 chunks"),
            ("per_million_tokens", "for a million tokens"),
        )
        total = f"{cost['total']:.6g} {cost['currency']} in all"
        each = [f"{cost[name]:.6g} {what}" for name, what in figures if cost.get(name) is not None]
        say(f"cost         {', '.join([total, *each])}")
    if cost.get("energy_kwh") is not None:
        say(f"energy       {cost['energy_kwh']:.6g} kWh of the GPUs")


def _print_proposals(proposals: dict[str, Any], index: Path) -> None:
    unasked = f", {proposals['failed']} questions without an answer" if proposals["failed"] else ""
    say(
        f"proposals    {proposals['proposals']} types in {proposals['chunks']} chunks, "
        f"{len(proposals['passing'])} pass the gates{unasked}; "
        f"see 'hornbeam schema proposals --index {index}'"
    )


def _print_gates(gates: dict[str, dict[str, Any]]) -> None:
    if not gates:
        return
    failed = {name: gate for name, gate in gates.items() if not gate["passed"]}
    say(f"gates        {len(gates) - len(failed)} of {len(gates)} passed")
    for name, gate in failed.items():
        examples = ", ".join(gate.get("offenders", []))
        line = f"{name}: {gate['value']:.4f}, threshold {gate['threshold']}; {examples}"
        say(f"  refused    {line}{_hint(name)}")


def _hint(gate: str) -> str:
    """How to accept what a gate refused, where that is the user's to decide."""
    if gate not in ("degraded_chunks", "failed_chunks", "unverified_facts"):
        return ""
    return f" (accept it with --set gates.max_{gate}=SHARE)"
