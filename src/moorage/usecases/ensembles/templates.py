"""Templates: stored in versions, found by id or name, and instantiated as descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.changes import Changeset, DeleteTemplate, PutTemplate
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import DuplicateName, Forbidden, InvalidDescription, NotFound
from moorage.domain.quotas import QuotaName
from moorage.domain.templates import (
    Parameter,
    Template,
    TemplateFormat,
    check_placeholders,
    fill_placeholders,
    parameter_values,
    read_parameters,
)
from moorage.heat.compile import Source, compile_template
from moorage.heat.template import read_template
from moorage.usecases.shared.access import (
    made_by_request,
    owned,
    require_operator,
    sees,
    visible_project,
)
from moorage.usecases.shared.limits import check_template_size
from moorage.usecases.shared.quotas import bound_stored, check_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.describe import EnsembleDescription
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller, Store

PARAMETERS: Final = "parameters"
_DESCRIBED: Final = frozenset({"name", "members", "policies", "metadata"})
_HOT: Final = frozenset({"template", "environment", "environment_files", "files"})


@dataclass(frozen=True, slots=True)
class TemplateDraft:
    """A template as written by its author."""

    name: str
    format: TemplateFormat
    source: Mapping[str, object]
    """`moorage`: a description with `parameters`; `hot`: as the body of POST /v1/hot."""
    shared: bool = False


def create_template(
    env: UseCaseEnvironment,
    caller: Caller,
    written: TemplateDraft,
    identity: RequestIdentity,
) -> Template:
    """Create a template, version 1.

    The same request with the same id gets the same answer.

    Raises:
        InvalidDescription: the template is not valid; with path, and line in a Heat template.
        Forbidden: only operators share templates with every project.
        DuplicateName: the project has a template of that name, or the id was used by another
            request.
    """
    made = _checked(env, caller, written, identity)
    if (known := made_by_request("template", identity, env.store.template)) is not None:
        return known
    if any(
        one.project_id == made.project_id
        for one in env.store.templates(project_id=caller.project_id, name=written.name)
    ):
        raise DuplicateName("template", written.name)
    return _keep(env, made)


def revise_template(
    env: UseCaseEnvironment,
    caller: Caller,
    reference: str,
    written: TemplateDraft,
) -> Template:
    """Create the next version of a template; its name and earlier versions do not change.

    Raises:
        NotFound: no such template of this caller's.
        InvalidDescription, Forbidden: as for a new one.
        ConcurrentUpdate: another version was written concurrently.
    """
    newest = own_template(env.store, caller, reference)
    made = _checked(env, caller, replace(written, name=newest.name), None)
    following = replace(
        made,
        id=newest.id,
        version=newest.version + 1,
        project_id=newest.project_id,
        shared=newest.shared or written.shared,
    )
    return _keep(env, following)


def delete_template(env: UseCaseEnvironment, caller: Caller, reference: str) -> Template:
    """Delete all versions of a template; ensembles made from it stay.

    Raises:
        NotFound: no such template of this caller's.
    """
    found = own_template(env.store, caller, reference)
    env.store.commit(Changeset((DeleteTemplate(found.id),)))
    return found


def list_templates(
    env: UseCaseEnvironment, caller: Caller, page: Page, *, name: str | None, all_projects: bool
) -> Sequence[Template]:
    """The newest versions of the caller's templates and of shared ones, oldest template first.

    Raises:
        Forbidden: a tenant asked for the templates of every project.
        NotFound: the page's marker is no template for this caller.
    """
    project = visible_project(caller, all_projects=all_projects, project_id=None)
    if page.marker is not None:
        usable_template(env.store, caller, page.marker)
    return env.store.templates(project_id=project, name=name, page=page)


def usable_template(store: Store, caller: Caller, reference: str) -> Template:
    """The template with this id or name (`upf`), or a version of it (`upf@3`).

    If the project's own template and a shared one have the name, it is the project's own.

    Raises:
        NotFound: no such template that the caller may use.
        InvalidDescription: the text after the `@` is no version number.
    """
    name, at, number = reference.rpartition("@")
    if not at:
        name, version = reference, None
    elif number.isascii() and number.isdigit() and len(number) <= _DIGITS:
        version = int(number)
    else:
        raise InvalidDescription(f"not a version's number: {number!r}", path="template")
    found = _by_id(store, caller, name, version) or _by_name(store, caller, name, version)
    if found is None:
        raise NotFound("template", reference)
    return found


_DIGITS: Final = 9


def own_template(store: Store, caller: Caller, reference: str) -> Template:
    """The newest version of a template that the caller may change.

    Raises:
        NotFound: no such template of the caller's project.
    """
    return owned(caller, "template", reference, usable_template(store, caller, reference))


def instantiate(
    store: Store,
    caller: Caller,
    reference: str,
    given: Mapping[str, object],
    name: str | None = None,
) -> EnsembleDescription:
    """The ensemble description of a template with these parameters; nothing is stored.

    Parameters that are not `given` have their defaults; a name of None is the template's. For
    `reference` see `usable_template`.

    Raises:
        NotFound: no such template for the caller.
        InvalidDescription: a parameter is missing, unknown or has a value that is not allowed, or
            the resulting description is not valid.
    """
    template = usable_template(store, caller, reference)
    made = (
        _of_heat(template, given, name)
        if template.format is TemplateFormat.HOT
        else _of_moorage(template, given, name)
    )
    return replace(made, template=(template.id, template.version))


def _of_moorage(
    template: Template, given: Mapping[str, object], name: str | None
) -> EnsembleDescription:
    source = fill_placeholders(template.source, parameter_values(template.parameters, given))
    source.setdefault("name", template.name)
    if name is not None:
        source["name"] = name
    return read_ensemble(source)


def _of_heat(
    template: Template, given: Mapping[str, object], name: str | None
) -> EnsembleDescription:
    plain: Any = dict(given)
    return compile_template(
        replace(_heat_source(template.source), parameters=plain, name=name or template.name)
    ).description


def _heat_source(source: Mapping[str, object]) -> Source:
    for one in source:
        if one not in _HOT:
            raise InvalidDescription(f"a Heat template comes without {one}", path=f"source.{one}")
    text, environment, files = (source.get(name) for name in ("template", "environment", "files"))
    if not isinstance(text, str):
        raise InvalidDescription("the template's text is needed", path="source.template")
    if environment is not None and not isinstance(environment, str):
        raise InvalidDescription("an environment is text", path="source.environment")
    files = {} if files is None else files
    if not isinstance(files, Mapping) or not all(isinstance(one, str) for one in files.values()):
        raise InvalidDescription("files are texts by name", path="source.files")
    names = source.get("environment_files", ())
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
        raise InvalidDescription("a list of names of files", path="source.environment_files")
    return Source(text, environment, tuple(names), files=MappingProxyType(dict(files)))


def _checked(
    env: UseCaseEnvironment,
    caller: Caller,
    written: TemplateDraft,
    identity: RequestIdentity | None,
) -> Template:
    """Version 1 of a template, validated as far as is possible without parameter values."""
    if written.shared:
        try:
            require_operator(caller)
        except Forbidden:
            raise Forbidden("only operators share templates with every project") from None
    source = dict(written.source)
    parameters: tuple[Parameter, ...] = ()
    if written.format is TemplateFormat.HOT:
        read_template(_heat_source(source).template)
    else:
        parameters = read_parameters(source.pop(PARAMETERS, {}))
        _check_description(written.name, source, parameters)
    return Template(
        id=env.ids.uuid() if identity is None else identity.id,
        version=1,
        project_id=caller.project_id,
        user_id=caller.user_id,
        name=written.name,
        format=written.format,
        source=MappingProxyType(source),
        parameters=parameters,
        shared=written.shared,
        digest="" if identity is None else identity.digest,
        created_at=env.store.now(),
    )


def _check_description(
    name: str, source: Mapping[str, object], parameters: tuple[Parameter, ...]
) -> None:
    """Check a description's fields and placeholders; all of it if every parameter has a default.

    Raises:
        InvalidDescription: the description is not valid.
    """
    for one in source:
        if one not in _DESCRIBED:
            raise InvalidDescription(f"a template has no field {one!r}", path=one)
    check_placeholders(source, parameters)
    if all(one.default is not None for one in parameters):
        read_ensemble({"name": name, **fill_placeholders(source, parameter_values(parameters, {}))})


def _keep(env: UseCaseEnvironment, template: Template) -> Template:
    check_template_size(env.limits, template.source)
    check_stored(env, template.project_id, QuotaName.TEMPLATES)
    bound = bound_stored(env, template.project_id, QuotaName.TEMPLATES)
    env.store.commit(Changeset((PutTemplate(template), bound)))
    return template


def _by_id(store: Store, caller: Caller, name: str, version: int | None) -> Template | None:
    try:
        found = store.template(name, version)
    except NotFound:
        return None
    return found if found.shared or sees(caller, found.project_id) else None


def _by_name(store: Store, caller: Caller, name: str, version: int | None) -> Template | None:
    usable = store.templates(project_id=caller.project_id, name=name)
    for one in sorted(usable, key=lambda known: known.project_id != caller.project_id):
        try:
            return one if version is None else store.template(one.id, version)
        except NotFound:
            continue
    return None
