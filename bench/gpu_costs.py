"""What 1,000 chunks would cost on named GPUs: measured tokens over published throughput. An estimate.

    seconds for 1,000 chunks = 1,000 · (prompt − cached + output) / total tokens a second
    money                    = seconds / 3600 · price of an hour

The throughputs are of long runs of one prompt shape, published by others, prompt and output together; none
was measured here, and constrained decoding, a shorter output and cached prefixes change them. Prices are
assumptions: put in your own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    gpu: str
    model: str
    tokens_per_second: float  # prompt and output
    hour_price: float  # USD, assumed
    source: str


PUBLISHED = (
    Published("1 x H100 80 GB", "Qwen3-14B", 10_600, 2.5, "GPUStack lab, vLLM 0.11, 2,000 in, 100 out"),
    Published("1 x H100 80 GB", "Qwen3.5-9B", 34_500, 2.5, "GPUStack lab, vLLM, throughput mode"),
    Published("1 x H200 141 GB", "Qwen3.5-35B-A3B FP8", 50_500, 3.5, "GPUStack lab, vLLM, throughput mode"),
)


def cost_rows(tokens_per_chunk: float) -> list[dict[str, object]]:
    """Args: tokens_per_chunk: prompt tokens that no cache had, and output."""
    rows: list[dict[str, object]] = []
    for one in PUBLISHED:
        seconds = 1000 * tokens_per_chunk / one.tokens_per_second
        rows.append(
            {
                "gpu": one.gpu,
                "model": one.model,
                "chunks_per_second": round(1000 / seconds, 1),
                "seconds_per_1000_chunks": round(seconds, 1),
                "usd_per_1000_chunks": round(seconds / 3600 * one.hour_price, 4),
                "assumed_usd_per_hour": one.hour_price,
                "source": one.source,
            }
        )
    return rows
