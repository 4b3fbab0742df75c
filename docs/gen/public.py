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
- openb 2023: `openb_node_list_gpu_node.csv`, `openb_pod_list_default.csv` and
  `openb_pod_list_gpuspec33.csv`, from the folder `cluster-trace-gpu-v2023/csv` of the same.
- Machine reassignment: `model_*.txt` and `assignment_*.txt` of the instances A, from
  [roadef.org](https://www.roadef.org/challenge/2012/en/), or the folder `data/A` of
  [github.com/wjaskowski/roadef-challange-2012-public](https://github.com/wjaskowski/roadef-challange-2012-public),
  read at commit 02ae65a3e903.
- Cluster trace: the four files `scheduling_preliminary_*.csv` of the
  [contest](https://tianchi.aliyun.com/competition/entrance/231663/introduction), whose page asks
  for an account.
- Gangs on racks need no file: their numbers are those of `test/performance/scheduler/configs/tas`
  of [github.com/kubernetes-sigs/kueue](https://github.com/kubernetes-sigs/kueue) at commit
  cc13fff80cda.

For the first two:

    mkdir -p .cache/public && cd .cache/public
    git clone --depth 1 --filter blob:none --sparse https://github.com/alibaba/clusterdata
    git -C clusterdata sparse-checkout set cluster-trace-gpu-v2025 cluster-trace-gpu-v2023
    cp clusterdata/cluster-trace-gpu-v2025/*.csv clusterdata/cluster-trace-gpu-v2023/csv/*.csv .

The tables above are made by

    make bench-public
    make bench-public ARGS="--data gpu-v2025 --loads 90 --orders size"

and `ARGS="--generated 1"` runs the first on applications that a generator makes in the shape of
the trace, the same for a number. On these, the tests hold what the tables show.

**What is read of gpu-v2025.** The instances that are there when most of them are (146 applications,
8,983 instances); VCPU, memory and GPUs of each, and the greatest number of instances of an
application on one host, among instances of one role. Network bandwidth and disks are left out.
Hosts have 192 VCPU and 1,536 GiB, or 128 VCPU and 8 GPUs; the memory of the latter is not
published, and 1,024 GiB are assumed. Growth reads all 23,871 instances, with the seconds at which
they were scheduled and deleted.

**What is read of openb.** Every node that has GPUs, and every task in the order of its creation:
CPU, memory, GPUs or the part of one, and `gpu_spec`, the models that will do. Each GPU is a
provider of 1,000 shares below its host. Priorities and ends are left out.
"""


def page() -> str:
    """The tables, and where the traces come from."""
    return f"{RESULTS.read_text(encoding='utf-8')}\n{AFTER}"
