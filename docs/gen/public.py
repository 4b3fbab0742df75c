"""The page of public traces, from the results that were kept."""

from __future__ import annotations

from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "public" / "RESULTS.md"

AFTER: Final = """\
## The traces, and how to run them

The traces are not part of Moorage. Who runs this fetches them, under their own terms, into one
folder, by default `.cache/public`; what is not there is left out. Nothing has to be converted:

- gpu-v2025: `disaggregated_DLRM_trace.csv`, from the folder `cluster-trace-gpu-v2025` of
  [github.com/alibaba/clusterdata](https://github.com/alibaba/clusterdata), read at commit
  7a6c496e4f4b.

For the first of them:

    mkdir -p .cache/public && cd .cache/public
    git clone --depth 1 --filter blob:none --sparse https://github.com/alibaba/clusterdata
    git -C clusterdata sparse-checkout set cluster-trace-gpu-v2025
    cp clusterdata/cluster-trace-gpu-v2025/*.csv .

The tables above are made by

    make bench-public
    make bench-public ARGS="--data gpu-v2025 --loads 90 --orders size"

and `ARGS="--generated 1"` runs the same on applications that a generator makes in the shape of
the trace, the same for a number. On these, the tests hold what the tables show.

**What is read of gpu-v2025.** The instances that are there when most of them are (146 applications,
8,983 instances); VCPU, memory and GPUs of each, and the greatest number of instances of an
application on one host, among instances of one role. Network bandwidth and disks are left out.
Hosts have 192 VCPU and 1,536 GiB, or 128 VCPU and 8 GPUs; the memory of the latter is not
published, and 1,024 GiB are assumed.
"""


def page() -> str:
    """The tables, and where the traces come from."""
    return f"{RESULTS.read_text(encoding='utf-8')}\n{AFTER}"
