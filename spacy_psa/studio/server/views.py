"""Views of a server beside its first page: what `create_app` is given to add one."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from fastapi import APIRouter

from spacy_psa.studio.server.models import ServedModel

WithModel = Callable[[str | None, Callable[[ServedModel], Any]], Awaitable[Any]]
"""Calls a function with the model of a name (None: the first), in the thread of that model, within
the time of a request."""


class View(NamedTuple):
    """A page of a server and the requests that it makes.

    Args:
        name: what the links to it say.
        path: where it is, such as `/annotate`.
        router: makes its routes: the page at `path`, and its interface below `/api` and `path`.

    Examples:
        >>> def routes(with_model: WithModel) -> APIRouter:
        ...     router = APIRouter()
        ...     @router.get("/names")
        ...     async def names() -> str:
        ...         return await with_model(None, lambda model: model.name)
        ...     return router
        >>> View("Names", "/names", routes).path
        '/names'
    """

    name: str
    path: str
    router: Callable[[WithModel], APIRouter]
