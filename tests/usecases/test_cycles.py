"""What was searched is freed with the answer: no cycle keeps it until the collector looks.

Planners look for cycles seldom, and what a search on a large fleet knows is some megabytes.
"""

import gc

import pytest

from moorage.domain.errors import Infeasible
from moorage.solver.partial_solution import Partial
from moorage.testing.service import Service
from moorage.usecases.decide.attempt import AttemptMaker

APART = {"name": "apart", "type": "anti-affinity", "members": ["x"], "level": "host"}
TOGETHER = {"name": "near", "type": "affinity", "members": ["x"], "level": "rack"}


@pytest.mark.parametrize(("vcpus", "status"), [(1, 201), (600, 409)])
def test_an_answer_leaves_no_cycles(service: Service, vcpus: int, status: int) -> None:
    body = {
        "name": "e",
        "members": [{"name": "x", "count": 3, "resources": {"VCPU": vcpus}}],
        "policies": [APART, TOGETHER],
        "decide": {"hold": "PT1H"},
    }
    gc.collect()
    gc.disable()
    try:
        assert service.call("POST", "/ensembles", {"ensemble": body}).status_code == status
        searched = (Partial, AttemptMaker, Infeasible)
        assert not [type(one) for one in gc.get_objects() if isinstance(one, searched)]
    finally:
        gc.enable()
