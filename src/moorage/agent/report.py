"""Brings the ledger to a node's target: reads, plans, writes, and again after a conflict."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from random import SystemRandom
from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution
from moorage.agent.ledger_tree import PresentTree, read_tree
from moorage.agent.plan import make_plan
from moorage.agent.plan_steps import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    PutAggregates,
    PutInventories,
    PutTraits,
    Reshape,
)
from moorage.agent.pools import PresentPools, plan_pools, read_pools
from moorage.agent.target import ROOT, STORAGE, TargetProvider, key_in
from moorage.agent.tree_match import Allowed
from moorage.client.placement_wire import SourceFailed
from moorage.domain.errors import ConcurrentUpdate, Conflict, NotFound
from moorage.domain.retry_policy import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moorage.agent.plan_steps import Plan, Step, Transfer
    from moorage.agent.target import Target
    from moorage.client.provider_trees import ConsumerAllocations, ListedProvider, ProviderTrees

_RETRY: Final = RetryPolicy(first_pause=0.1, longest_pause=3.0, growth=2.0, jitter=1.0, attempts=12)
_FORBIDDEN: Final = 403
_CONFLICT: Final = 409
_MISSING: Final = 404
_CONCURRENT: Final = "placement.concurrent_update"
_CUSTOM: Final = "CUSTOM_"


@dataclass(frozen=True, slots=True)
class Report:
    """What was done, or with a dry run would be."""

    name: str
    steps: tuple[Step, ...] = ()
    cautions: tuple[Caution, ...] = ()
    providers: int = 0
    """The agent's own, afterwards."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How a target is reported."""

    dry_run: bool = False
    many_removals: bool = False
    prune: bool = False
    """Delete the empty providers of what is gone."""
    sleep: Callable[[float], object] = time.sleep
    chance: Callable[[], float] = field(default=SystemRandom().random)


def report(trees: ProviderTrees, target: Target, options: ReportOptions) -> Report:
    """Bring the node's providers to the target.

    Raises:
        NotFound: there is no root provider, and it is not the agent's to make.
        Conflict: the root provider is not the agent's, though the configuration says so; or the
            tree is written faster than it can be read.
        SourceFailed: the service refuses, or does not answer.
    """
    return _Reporting(trees, options).report(_with_known_traits(trees, target))


def _with_known_traits(trees: ProviderTrees, target: Target) -> Target:
    """The target without standard traits that the service is too old for, or that are mistyped."""
    named = [*(one.traits for one in target.providers), *(one.traits for one in target.pools)]
    some = {trait for traits in named for trait in traits if not trait.startswith(_CUSTOM)}
    unknown = frozenset(some) - trees.known_traits(some)
    if not unknown:
        return target
    return replace(
        target,
        providers=tuple(replace(one, traits=one.traits - unknown) for one in target.providers),
        pools=tuple(replace(one, traits=one.traits - unknown) for one in target.pools),
        cautions=(
            *target.cautions,
            *(
                Caution("unknown-trait", one, "the service does not know it")
                for one in sorted(unknown)
            ),
        ),
    )


def find_root(trees: ProviderTrees, target: Target) -> ListedProvider | None:
    """The node's root provider; None: there is none, and the agent makes it.

    Raises:
        NotFound: there is none, and it is another's to make.
        Conflict: what has the name or UUID is a provider inside a tree.
    """
    found = None
    if target.uuid is not None or target.own_root:
        found = trees.find(target.uuid or target.new_uuid)
    if found is None and (target.uuid is None or target.own_root):
        found = trees.named(target.name)
    if found is None and not target.own_root:
        who = target.name if target.uuid is None else f"{target.uuid} ({target.name})"
        raise NotFound(
            "resource provider", f"{who}; Nova's compute service makes it, or `root: agent`"
        )
    if found is not None and found.parent is not None:
        raise Conflict(f"resource provider {found.name} is inside a tree, not the root of one")
    return found


def generations(trees: ProviderTrees, target: Target) -> frozenset[ListedProvider]:
    """The providers of the tree as listings have them: if none moves, nothing has changed there.

    Raises as `report`.
    """
    root = find_root(trees, target)
    return frozenset() if root is None else frozenset(trees.in_tree(root.uuid))


class _Reporting:
    """One report, with what was learned in its attempts."""

    def __init__(self, trees: ProviderTrees, options: ReportOptions) -> None:
        self._trees = trees
        self._options = options
        self._allowed = Allowed(
            many_removals=options.many_removals,
            re_parenting=trees.re_parents,
            pruning=options.prune,
        )
        self._done: list[Step] = []
        self._generations: dict[str, int] = {}
        self._ensured: set[str] = set()

    def report(self, target: Target) -> Report:
        failures = 0
        while True:
            tree, pools = self._read(target)
            plan = self._plan(target, tree, pools)
            cautions = tuple(dict.fromkeys((*target.cautions, *plan.cautions)))
            count = len(tree.own) + sum(isinstance(one, CreateProvider) for one in plan.steps)
            count -= sum(isinstance(one, DeleteProvider) for one in plan.steps)
            if self._options.dry_run:
                return Report(tree.root_name, plan.steps, cautions, count)
            if self._apply(plan.steps):
                return Report(tree.root_name, tuple(self._done), cautions, count)
            failures += 1
            if failures == _RETRY.attempts:
                raise ConcurrentUpdate(
                    f"gave up after {failures} conflicts; the next run tries again",
                    subject=tree.root_uuid,
                )
            self._options.sleep(_RETRY.pause(failures, self._options.chance()))

    def _read(self, target: Target) -> tuple[PresentTree, PresentPools]:
        root = find_root(self._trees, target)
        if root is None:
            tree = PresentTree(target.new_uuid, target.name, exists=False)
        else:
            tree = read_tree(self._trees, root, (one.key for one in target.providers))
            if target.own_root and ROOT not in tree.own:
                raise Conflict(
                    f"resource provider {root.name} is not the agent's; set `root: nova`"
                )
        pools = read_pools(self._trees, target, tree)
        self._generations = {
            one.uuid: one.generation for one in (*tree.own.values(), *pools.providers.values())
        }
        return tree, pools

    def _plan(self, target: Target, tree: PresentTree, pools: PresentPools) -> Plan:
        if pools.used_here and all(one.key != STORAGE for one in target.providers):
            target = replace(target, providers=(*target.providers, TargetProvider(STORAGE)))
        plan = make_plan(target, tree, self._allowed)
        storage = tree.own.get(STORAGE)
        uuid = storage.uuid if storage else None
        for step in plan.steps:
            if isinstance(step, CreateProvider) and key_in(step.name) == STORAGE:
                uuid = step.uuid
        of_pools = plan_pools(target, tree, pools, uuid)
        # What leaves a pool does so before the provider that joined it is deleted.
        deleted = [one for one in plan.steps if isinstance(one, DeleteProvider)]
        first = [one for one in plan.steps if not isinstance(one, DeleteProvider)]
        steps = (*first, *of_pools.steps, *deleted)
        return replace(plan, steps=steps, cautions=(*plan.cautions, *of_pools.cautions))

    # --- writing ------------------------------------------------------------------------------

    def _apply(self, steps: Iterable[Step]) -> bool:
        """Carry out the steps; False after a conflict, from which a new plan may learn."""
        for step in steps:
            try:
                self._carry_out(step)
            except ConcurrentUpdate:
                return False
            except SourceFailed as error:
                refused = isinstance(step, Reshape) and error.status == _FORBIDDEN
                if error.status not in {_CONFLICT, _MISSING} and not refused:
                    raise
                self._learn(step, error)
                return False
            self._done.append(step)
        return True

    def _learn(self, step: Step, error: SourceFailed) -> None:
        """Change what the next plan may do, unless it was a passing conflict."""
        if error.code == _CONCURRENT or error.status == _MISSING:
            return
        allowed = self._allowed
        match step:
            case CreateProvider() | MoveProvider():
                if isinstance(step, MoveProvider) or self._trees.find(step.uuid) is None:
                    names = allowed.taken_names | {step.name}
                    self._allowed = replace(allowed, taken_names=names)
            case DeleteProvider():
                self._allowed = replace(allowed, in_use=allowed.in_use | {step.uuid})
            case Reshape():
                self._allowed = replace(allowed, moving=False)

    def _carry_out(self, step: Step) -> None:
        generations, trees = self._generations, self._trees
        match step:
            case CreateProvider():
                generations[step.uuid] = trees.create(step.uuid, step.name, step.parent)
            case MoveProvider():
                generations[step.uuid] = trees.update(step.uuid, step.name, step.parent)
            case PutTraits():
                self._ensure(step.traits, trees.ensure_trait)
                generations[step.uuid] = trees.put_traits(
                    step.uuid, step.traits, generations[step.uuid]
                )
            case PutInventories():
                self._ensure((i.resource_class for i in step.inventories), trees.ensure_class)
                generations[step.uuid] = trees.put_inventories(
                    step.uuid, step.inventories, generations[step.uuid]
                )
            case PutAggregates():
                generations[step.uuid] = trees.put_aggregates(
                    step.uuid, step.aggregates, generations[step.uuid]
                )
            case Reshape():
                self._reshape(step)
            case DeleteProvider():
                trees.delete(step.uuid)

    def _ensure(self, names: Iterable[str], ensure: Callable[[str], None]) -> None:
        for name in sorted(names):
            if name.startswith(_CUSTOM) and name not in self._ensured:
                ensure(name)
                self._ensured.add(name)

    def _reshape(self, step: Reshape) -> None:
        for some in step.inventories.values():
            self._ensure((one.resource_class for one in some), self._trees.ensure_class)
        consumers: dict[str, ConsumerAllocations] = {}
        for one in step.transfers:
            before = consumers.get(one.consumer) or self._trees.consumer(one.consumer)
            if before is None:
                raise ConcurrentUpdate("a consumer is gone", subject=one.consumer)
            consumers[one.consumer] = transferred(before, one)
        inventories = {
            uuid: (some, self._generations[uuid]) for uuid, some in step.inventories.items()
        }
        self._trees.reshape(inventories, consumers)
        for uuid in step.inventories:
            found = self._trees.find(uuid)
            if found is not None:
                self._generations[uuid] = found.generation


def transferred(before: ConsumerAllocations, one: Transfer) -> ConsumerAllocations:
    """A consumer's allocations after a transfer.

    Raises:
        ConcurrentUpdate: it does not have what is to be moved.
    """
    some: dict[str, dict[str, int]] = {
        uuid: dict(amounts) for uuid, amounts in before.allocations.items()
    }
    source = some.get(one.source, {})
    left = source.get(one.resource_class, 0) - one.amount
    if left < 0:
        raise ConcurrentUpdate("a consumer has changed", subject=one.consumer)
    if left:
        source[one.resource_class] = left
    else:
        del source[one.resource_class]
    if not source:
        del some[one.source]
    target = some.setdefault(one.target, {})
    target[one.resource_class] = target.get(one.resource_class, 0) + one.amount
    return replace(before, allocations=some)
