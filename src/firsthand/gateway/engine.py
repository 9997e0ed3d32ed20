"""What becomes of one request: matched, recorded, measured, and above the trigger projected. No HTTP in here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..budget import Occupancy
from ..checkpoint import Checkpoint
from ..projection.plan import Trigger
from ..session.overflow.classifying import classify, silent_truncation
from ..session.requests import Attachment
from ..session.store import SessionStore
from ..tokens import counter_for_model
from ..transcript import Usage
from .attached import Attached, AttachedTo
from .calibration import Calibration
from .compacting import Compactor, Wanted, due
from .config import GatewayConfig
from .context import Arrived, Context, Decision, Prepared, budget_of, phase_of, shared_with_summary
from .paths import Anchor, Front, Path, Paths, root_of
from .recalling import Recaller, with_recalls
from .recognise import client_compaction, session_key, without_thinking
from .recorder import Recorder
from .remembering import Memory
from .replies import stopped_full
from .request import KnownFacts, Unmanaged, read_request
from .stitch import joined, tail_pieces
from .store import GatewayStore
from .windows import Window, Windows, learned_name
from .wires import CHAT

__all__ = ["Engine"]

_IN_THREAD_FROM = 64 * 1024
"""Bytes of unknown messages from which they are read in a thread."""


class Engine:
    """Decides about requests. All methods are called in one event loop; the journal is used in threads."""

    def __init__(self, config: GatewayConfig, store: GatewayStore, log: Callable[..., None]) -> None:
        self.config = config
        self.store = store
        self.paths = Paths()
        self.windows = Windows(config)
        self.calibration = Calibration()
        self.recorder = Recorder()
        self.compactor = Compactor(store, config.strategy)
        self._known = KnownFacts()
        # Planning is work for the processor: more of it side by side would only hold up the streams of everybody else.
        self._few_at_a_time = asyncio.Semaphore(2)
        self.attached = Attached(store.journal)
        self.recaller = Recaller(store.journal, config.recall)
        self._bare: set[tuple[str, str]] = set()
        self._log = log
        self._memory = Memory(store, self.paths, self.recorder, log)

    async def prepare(self, arrived: Arrived) -> Prepared:
        """What to send for a request.

        Raises:
            Exception: whatever goes wrong; the request then goes through as it came.
        """
        try:
            context = await self._context(arrived)
        except Unmanaged as reason:
            return Prepared(arrived.body, "passed", str(reason))
        if context is None:
            return Prepared(arrived.body, "passed", "it has no conversation yet")
        request, headers = context.request, arrived.headers
        tenant = self.paths.tenant(arrived.tenant)
        scope = session_key(request, headers)
        await self._memory.loaded(tenant, root_of(request.wire.name, context.facts[0]))
        found = self.paths.look(tenant, scope, request.wire.name, context.facts)
        client = client_compaction(request, headers, context.facts, found, head=context.head)
        if client is not None or arrived.counting:
            if found is None:
                return Prepared(arrived.body, "forwarded", f"client-compaction: {client}" if client else "")
            context = replace(context, path=found[0], length=found[1])
            return await self._unrecorded(context, client)
        match = self.paths.match(tenant, scope, request.wire.name, context.facts)
        context = replace(context, path=match.path, length=match.length)
        self._memory.record(tenant, context, match)
        match.path.tools = 1 if request.value("tools") else 0
        await self.recorder.make_room()
        decided = await self._decided(context)
        match.path.sent = max(match.path.sent, match.length)
        return decided

    async def recover(
        self, prepared: Prepared, status: int, body: bytes, headers: Mapping[str, str]
    ) -> Prepared | None:
        """What to send once more after a refusal that firsthand can mend; None when it cannot, or did already (OV-06, OV-10, GW-09)."""
        context = prepared.context
        if context is None or prepared.retried or context.arrived.mode != "on" or context.arrived.counting:
            return None
        found = classify(status, body, headers)
        if found.kind == "invalid_encrypted_content":
            smaller = without_thinking(read_request(context.request.wire, prepared.body))
            if smaller is None:
                return None
            return replace(prepared, body=smaller, reason="opaque reasoning was refused and left out", retried=True)
        if found.kind != "overflow":
            return await self._without_blocks(prepared, context, status)
        return await self._smaller(prepared, context, found.limit, "the provider refused the request as too large")

    async def stopped(self, prepared: Prepared, response: Mapping[str, Any]) -> Prepared | None:
        """What to send once more after a whole answer that ended because the window was full (OV-07, OV-13); None for any other."""
        context = prepared.context
        if context is None or prepared.retried or context.arrived.mode != "on" or context.arrived.counting:
            return None
        sent, window = prepared.tokens_after or 0, prepared.window.tokens
        if not stopped_full(context.request.wire.name, response, sent, window):
            return None
        return await self._smaller(prepared, context, None, "the answer stopped because the window was full")

    async def _smaller(self, prepared: Prepared, context: Context, limit: int | None, reason: str) -> Prepared | None:
        """The request with a new checkpoint, and with a smaller window where the refusal says that it is one."""
        window = self.windows.of(context.arrived.upstream.name, context.request.model, context.path)
        used = self._occupancy(context, context.front).tokens
        if limit and (window.tokens is None or limit < window.tokens):
            self._learn(context, limit)
            window = Window(limit, "learned")
        elif not limit and (window.tokens is None or used < window.tokens * 3 // 4):
            # The provider names no size, and by what is known of its window this request should have fitted: so less is known than thought.
            window = Window(max(1, used * 3 // 4), "learned")
            context.path.learned[learned_name(context.request.model)] = window.tokens or 1
        again = await self._compacted(context, window, "provider_context_limit")
        if again is None or again.body == prepared.body:
            return None
        return replace(again, reason=reason, retried=True)

    async def _without_blocks(self, prepared: Prepared, context: Context, status: int) -> Prepared | None:
        """The request without recall blocks: some servers of Chat Completions take no list of texts, and say so in many ways."""
        if (
            status not in (400, 422)
            or context.request.wire is not CHAT
            or context.front is None
            or not context.recalled
        ):
            return None
        made = await self._projected(
            replace(context, bare=True), prepared.window, prepared.decision, prepared.tokens_before or 0, ""
        )
        return replace(made, reason="recall was left out after a refusal", retried=True)

    def answered(self, prepared: Prepared, usage: Usage | None, *, complete: bool) -> None:
        """Take note of how the answer ended and what the provider counted. The reply itself is pending until a request shows it."""
        context = prepared.context
        if context is None or context.arrived.counting or context.length != len(context.facts):
            return
        sent_as_it_came = context.arrived.mode != "on"
        if context.bare and prepared.retried:
            # Without its blocks the request was taken.
            self._bare.add((context.arrived.upstream.name, context.request.model))
        front = None if sent_as_it_came else context.front
        anchor = Anchor(
            context.length, usage or Usage(input_tokens=0), context.fixed, front.checkpoint.id if front else ""
        )
        path = context.path
        path.pending = (anchor, complete)
        if usage is not None and usage.input_tokens and complete:
            path.anchor = anchor
            counted = self._behind(context, front).counted
            if silent_truncation(usage.input_tokens, context.tokens(counted), prepared.window.tokens):
                self._log(
                    "truncation suspected",
                    session=path.session,
                    reported=usage.input_tokens,
                    estimated=context.tokens(counted),
                )
            self.calibration.learn(
                context.arrived.upstream.name,
                context.request.model,
                reported=usage.input_tokens,
                counted=counted,
                window=prepared.window.tokens,
            )

    async def close(self) -> None:
        """Finish what is being written."""
        await asyncio.to_thread(self.recaller.close)
        await self.recorder.close()

    async def _context(self, arrived: Arrived) -> Context | None:
        request = read_request(arrived.wire, arrived.body)
        counter = counter_for_model(request.model)
        if self._known.unknown_bytes(request, counter) >= _IN_THREAD_FROM:
            facts = await asyncio.to_thread(self._known.of, request, counter)
        else:
            facts = self._known.of(request, counter)
        head = next((n for n, one in enumerate(facts) if not one.head), len(facts))
        head = max([head, *(n + 1 for n, one in enumerate(facts) if one.opaque)])
        if head == len(facts):
            return None
        fixed = request.fixed_tokens(counter) + sum(one.cost for one in facts[:head])
        nowhere = Path("", arrived.tenant, "", request.wire.name)
        percent = self.calibration.percent(arrived.upstream.name, request.model)
        bare = (arrived.upstream.name, request.model) in self._bare
        return Context(arrived, request, facts[head:], head, nowhere, 0, fixed, counter, percent, bare=bare)

    async def _unrecorded(self, context: Context, client: str | None) -> Prepared:
        """A client's own compaction goes through with its whole history where that fits; a count is made of what would be sent."""
        window = self._window(context)
        front = context.path.front(context.length)
        full = context.tokens(context.fixed + sum(one.cost for one in context.facts))
        reason = f"client-compaction: {client}" if client else ""
        as_it_came = Prepared(
            context.arrived.body, "forwarded", reason, full, full, window, replace(context, front=None)
        )
        budget = budget_of(context, window, self.config)
        if context.arrived.mode != "on" or (client and (budget is None or full <= budget.input_limit)):
            return as_it_came
        if front is not None:
            return await self._projected(replace(context, front=front), window, "projected", full, reason)
        if client and budget is not None:
            made = await self._compacted(context, window, "provider_context_limit")
            return as_it_came if made is None else replace(made, reason=reason)
        return as_it_came

    async def _decided(self, context: Context) -> Prepared:
        path, length = context.path, context.length
        window = self._window(context)
        front = path.front(length)
        used = self._occupancy(context, front)
        full = context.tokens(context.fixed + sum(one.cost for one in path.facts[:length]))
        budget = budget_of(context, window, self.config)
        reason = ""
        if budget is None:
            reason = (
                "the model's window is unknown"
                if window.tokens is None
                else "the output that it asks for fills the window"
            )
        else:
            wanted = due(self.config.strategy, path, front, used, budget, phase_of(context.facts))
            if wanted is not None:
                made = await self._compacted(context, window, wanted)
                if made is not None:
                    return made
                reason = f"a compaction was due and came to nothing: {path.refused}"
        if front is not None:
            return await self._projected(replace(context, front=front), window, "projected", full, reason)
        return Prepared(context.arrived.body, "forwarded", reason, used.tokens, used.tokens, window, context)

    async def _compacted(self, context: Context, window: Window, trigger: Trigger) -> Prepared | None:
        """The request with a new checkpoint; None when there was none to make."""
        path, length = context.path, context.length
        before = path.front(length)

        async def alone() -> Front | None:
            async with path.busy:
                front = path.front(length)
                return await self._made(context, window, trigger, front) if front is before else front

        # What is begun is finished when the client goes away meanwhile: its next try finds the checkpoint.
        work = asyncio.ensure_future(alone())
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        front = await asyncio.shield(work)
        if front is None or front is before:
            return None
        full = context.tokens(context.fixed + sum(one.cost for one in path.facts[:length]))
        return await self._projected(replace(context, front=front), window, "compacted", full, "")

    async def _made(self, context: Context, window: Window, trigger: Trigger, front: Front | None) -> Front | None:
        path, arrived = context.path, context.arrived
        budget = budget_of(context, window, self.config)
        if budget is None:
            return None
        used = self._occupancy(context, front)
        await self.recorder.flush()
        wanted = Wanted(
            path, context.length, front, budget, context.counter, used, trigger, phase_of(context.facts), context.request.model,
            arrived.summarise, *shared_with_summary(context),
        )  # fmt: skip
        async with self._few_at_a_time:
            made = await asyncio.to_thread(self.compactor.make, wanted)
        outcome = made.outcome
        self._log(
            "compaction", session=path.session, outcome=outcome.kind, reason=outcome.reason, trigger=trigger,
            tokens_before=used.tokens, checkpoint=outcome.checkpoint.id if outcome.checkpoint else None,
        )  # fmt: skip
        if made.front is None:
            path.tried_at = used.tokens
            path.refused = outcome.reason
            return None
        path.tried_at = 0
        self.paths.add_front(path, made.front)
        return made.front

    async def _projected(
        self, context: Context, window: Window, decision: Decision, full: int, reason: str
    ) -> Prepared:
        """The request with the checkpoint in place of what it covers."""
        front, request = context.front, context.request
        assert front is not None
        used = self._occupancy(context, front)
        context = self._behind(context, front)
        if context.arrived.mode != "on":
            return Prepared(context.arrived.body, decision, reason, full, used.tokens, window, context)
        error = await self._recall(context, front, window, used)
        context, used = self._behind(context, front), self._occupancy(context, front)
        raws = [request.item(n) for n in range(len(request.items))]
        head, tail = raws[: context.head], raws[context.head + front.covered :]
        ids = [*context.path.entries[front.covered : context.length]]
        ids += [f"unrecorded-{n}" for n in range(len(tail) - len(ids))]
        under = self.attached.under(front.checkpoint)
        if not context.bare:
            tail = with_recalls(request.wire, tail, ids, under)
        pieces, new = tail_pieces(
            request.wire, tail, context.facts[front.covered :], ids, under.placeholders, front.checkpoint.plan.cutoff
        )
        if new:
            self._attach(front.checkpoint, under, new)
        body = request.with_messages([*head, *joined(request.wire.name, [*front.pieces, *pieces])])
        newest = next((n for n in reversed(range(context.length)) if context.facts[n].role == "assistant"), -1)
        recalled = context.tokens(sum(cost for n, cost in context.recalled.items() if n > newest))
        return Prepared(body, decision, reason, full, used.tokens, window, context, recalled=recalled, error=error)

    async def _recall(self, context: Context, front: Front, window: Window, used: Occupancy) -> str:
        """Attaches what the newest message asks for of the covered history; what failed, or nothing. Never raises for a failure."""
        # What was sent once is not looked up any more; nor is what is not recorded (a count, a client's own compaction).
        if (
            context.bare
            or context.arrived.counting
            or context.length < len(context.facts)
            or context.path.sent >= context.length
        ):
            return ""
        under, error = self.attached.under(front.checkpoint), ""
        try:
            budget = budget_of(context, window, self.config)
            made = await self.recaller.found(context, front, budget, used, under)
        except Exception as failure:
            made, error = self.recaller.no_more(context, front), f"recall: {type(failure).__name__}"
            self._log("recall failed", error=type(failure).__name__, session=context.path.session)
        if made is not None:
            self._attach(front.checkpoint, under, (made,))
            # Stored before it is sent, so that a process that comes after this one sends the same.
            await self.recorder.flush()
        return error

    def _attach(self, checkpoint: Checkpoint, under: AttachedTo, new: tuple[Attachment, ...]) -> None:
        under.add(new)
        store = SessionStore(self.store.journal, checkpoint.session)
        self.recorder.submit(
            lambda: store.attach(checkpoint.id, new),
            lambda error: self._log("attach failed", error=type(error).__name__),
        )

    def _behind(self, context: Context, front: Front | None) -> Context:
        """The request with this checkpoint in force, or with none."""
        recalled: Mapping[int, int] = {}
        if front is not None and not context.bare:
            recalled = self.attached.recall_costs(context.path, front, context.length, context.counter)
        return replace(context, front=front, recalled=recalled)

    def _occupancy(self, context: Context, front: Front | None) -> Occupancy:
        """Tokens of the request with this checkpoint in force: what the provider counted last, and estimates of what came since."""
        path, facts = context.path, context.facts
        baseline = front.checkpoint.baseline if front else 0
        anchor = path.anchor
        under = front.checkpoint.id if front else ""
        context = self._behind(context, front)
        shown = context.tokens(context.counted)
        if anchor is None or anchor.under != under or anchor.sent > context.length:
            return Occupancy(shown, 0, baseline)
        since = anchor.sent
        later = context.tokens(sum(one.cost for one in facts[since:]) + _recalled_from(context, since))
        if silent_truncation(anchor.usage.input_tokens, shown - later, self._window(context).tokens):
            return Occupancy(shown, 0, baseline)
        while since < len(facts) and facts[since].role == "assistant":
            since += 1
        appended = sum(one.cost for one in facts[since:]) + _recalled_from(context, since)
        grown = context.tokens(max(0, context.fixed - anchor.fixed) + appended)
        return Occupancy(anchor.usage.total + grown, anchor.usage.total, baseline)

    def _window(self, context: Context) -> Window:
        return self.windows.of(context.arrived.upstream.name, context.request.model, context.path)

    def _learn(self, context: Context, limit: int) -> None:
        model, path = context.request.model, context.path
        self.windows.learn(context.arrived.upstream.name, model, limit)
        path.learned[learned_name(model)] = limit
        store = SessionStore(self.store.journal, path.session)
        self.recorder.submit(
            lambda: store.learn({learned_name(model): limit}),
            lambda error: self._log("learn failed", error=type(error).__name__),
        )
        self._log("limit learned", session=path.session, model=model, limit=limit)


def _recalled_from(context: Context, position: int) -> int:
    """Tokens of the recall blocks from a message on."""
    return sum(cost for number, cost in context.recalled.items() if number >= position)
