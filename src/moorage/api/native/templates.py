"""`/v1/templates`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from moorage.api.native import ensembles, reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import plain, view
from moorage.api.native.paging import listed
from moorage.domain.errors import InvalidDescription
from moorage.domain.templates import TemplateFormat
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.templates import (
    TemplateDraft,
    create_template,
    delete_template,
    instantiate,
    list_templates,
    revise_template,
    usable_template,
)
from moorage.wire import templates as wire

if TYPE_CHECKING:
    from moorage.domain.templates import Parameter, Template
    from moorage.wire.templates import InstanceBody, TemplateBody, VersionBody


def create(call: Call) -> Reply:
    """POST: create a template."""
    body: TemplateBody = call.body.template
    written = TemplateDraft(
        body.name, TemplateFormat(body.format), reading.builtins(body.source), body.shared
    )
    identity = reading.identity(call, body, body.id)
    return _made(call, call.perform(create_template, written, identity))


def revise(call: Call) -> Reply:
    """POST: add the next version."""
    body: VersionBody = call.body.template
    written = TemplateDraft(
        "", TemplateFormat(body.format), reading.builtins(body.source), body.shared
    )
    reference = call.path["id"]
    made = call.perform(revise_template, reference, written)
    return _made(call, made)


def listing(call: Call) -> Reply:
    """GET: a page of the newest versions."""
    read = partial(
        list_templates,
        call.env,
        call.caller,
        name=call.query.get("name"),
        all_projects=call.flag("all_projects"),
    )
    return listed(call, "templates", read, lambda one: _view(call, one))


def show(call: Call) -> Reply:
    """GET: the newest version, or a given one."""
    reference = call.path["id"]
    if "version" in call.query:
        if "@" in reference:
            raise InvalidDescription("the version is named twice", path="version")
        reference = f"{reference}@{call.query['version']}"
    return Reply(
        wire.OneTemplate(_view(call, usable_template(call.env.store, call.caller, reference)))
    )


def delete(call: Call) -> Reply:
    """DELETE: delete every version."""
    call.perform(delete_template, call.path["id"])
    return Reply()


def create_instance(call: Call) -> Reply:
    """POST: create an ensemble from a template; with `decide` place and hold it at once."""
    body: InstanceBody = call.body.instance
    made = call.perform(
        create_ensemble,
        instantiate(call.env.store, call.caller, call.path["id"], body.parameters, body.name),
        None if body.decide is None else reading.decision_options(call, body.decide),
        reading.identity(call, body, body.id),
    )
    return ensembles.made(call, made, location=True)


def _made(call: Call, template: Template) -> Reply:
    return call.made(
        wire.OneTemplate(_view(call, template), dry_run=call.dry_run),
        location=f"templates/{template.id}",
    )


def _view(call: Call, one: Template) -> wire.Template:
    return view(
        wire.Template,
        one,
        parameters={parameter.name: _parameter(parameter) for parameter in one.parameters},
        links=[
            call.link("self", "templates", one.id),
            call.link("instances", "templates", one.id, "instances"),
        ],
    )


def _parameter(one: Parameter) -> dict[str, Any]:
    found = {
        "type": one.type,
        "default": plain(one.default),
        "description": one.description or None,
        "min": one.least,
        "max": one.most,
        "allowed": plain(one.allowed) or None,
    }
    return {name: value for name, value in found.items() if value is not None}
