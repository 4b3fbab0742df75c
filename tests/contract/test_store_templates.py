"""The store contract: templates, version by version."""

from dataclasses import replace

import pytest
from tests.contract.test_store_bookings import write

from moorage.domain.changes import DeleteTemplate, PutTemplate
from moorage.domain.errors import ConcurrentUpdate, DuplicateName, NotFound
from moorage.domain.templates import Parameter, Template, TemplateFormat
from moorage.store import Ledger
from moorage.usecases.paging import Page

UPF = Template(
    id="t",
    version=1,
    project_id="p",
    user_id="u",
    name="upf",
    format=TemplateFormat.MOORAGE,
    source={"name": "upf", "members": [{"name": "upf", "count": "{count}", "flavor": "edge"}]},
    parameters=(Parameter("count", "number", default=4, most=50, allowed=(4, 8)),),
    digest="request",
)


def test_every_version_stays_and_the_newest_is_given_unasked(store: Ledger) -> None:
    second = replace(UPF, version=2, source={"name": "upf", "members": []})
    write(store, PutTemplate(UPF))
    write(store, PutTemplate(second))
    assert store.template("t") == second
    assert store.template("t", 1) == UPF
    with pytest.raises(NotFound):
        store.template("t", 3)
    with pytest.raises(ConcurrentUpdate):
        write(store, PutTemplate(second))
    with pytest.raises(NotFound):
        write(store, PutTemplate(replace(second, id="nobody")))


def test_a_name_is_taken_once_in_a_project(store: Ledger) -> None:
    write(store, PutTemplate(UPF))
    with pytest.raises(DuplicateName):
        write(store, PutTemplate(UPF))
    with pytest.raises(DuplicateName):
        write(store, PutTemplate(replace(UPF, id="another")))
    write(store, PutTemplate(replace(UPF, id="another", project_id="q")))


def test_projects_see_their_own_templates_and_shared_ones(store: Ledger) -> None:
    write(store, PutTemplate(UPF), PutTemplate(replace(UPF, version=2)))
    write(store, PutTemplate(replace(UPF, id="s", project_id="q", name="site", shared=True)))
    write(store, PutTemplate(replace(UPF, id="q", project_id="q")))

    def seen(project: str | None, **more: object) -> list[tuple[str, int]]:
        found = store.templates(project_id=project, **more)  # type: ignore[arg-type]
        return [(one.id, one.version) for one in found]

    assert seen("p") == [("t", 2), ("s", 1)]
    assert seen("q") == [("s", 1), ("q", 1)]
    assert seen(None) == [("t", 2), ("s", 1), ("q", 1)]
    assert seen("p", name="upf") == [("t", 2)]
    assert seen(None, page=Page(limit=1, marker="t")) == [("s", 1)]


def test_a_deleted_template_is_gone_in_all_versions(store: Ledger) -> None:
    write(store, PutTemplate(UPF), PutTemplate(replace(UPF, version=2)))
    write(store, DeleteTemplate("t"))
    with pytest.raises(NotFound):
        store.template("t", 1)
    with pytest.raises(NotFound):
        write(store, DeleteTemplate("t"))
    write(store, PutTemplate(UPF))
