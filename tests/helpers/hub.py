"""A small hub for models: the requests of huggingface_hub that write, and what came of them."""

import base64
import hashlib
import json
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

LARGE = 1000  # bytes of a file that goes to the store for large files


class Hub:
    """What a hub holds; `token` is the one that may write."""

    def __init__(self, token: str = "secret") -> None:
        self.token = token
        self.repositories: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.large: dict[str, bytes] = {}
        self.messages: list[str] = []

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/api/repos/create", self.create, methods=["POST"]),
                Route("/api/validate-yaml", self.validate, methods=["POST"]),
                Route("/api/models/{a}/{b}/preupload/{r}", self.preupload, methods=["POST"]),
                Route("/{a}/{b}/info/lfs/objects/batch", self.batch, methods=["POST"]),
                Route("/large/{oid}", self.put, methods=["PUT"]),
                Route("/api/models/{a}/{b}/commit/{r}", self.commit, methods=["POST"]),
            ]
        )

    async def create(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return JSONResponse({"error": "Invalid username or password."}, 401)
        asked = await request.json()
        name = f"{asked.get('organization') or 'ada'}/{asked['name']}"
        known = name in self.repositories
        self.repositories.setdefault(name, asked)
        self.address = str(request.base_url).rstrip("/")
        return JSONResponse({"url": f"{self.address}/{name}"}, 409 if known else 200)

    async def validate(self, request: Request) -> Response:
        text = (await request.json())["content"]
        return JSONResponse({"errors": [], "warnings": []}, 200 if text.startswith("---") else 400)

    async def preupload(self, request: Request) -> Response:
        files = (await request.json())["files"]
        rows = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["size"] > LARGE else "regular",
                "shouldIgnore": False,
            }
            for file in files
        ]
        return JSONResponse({"files": rows})

    async def batch(self, request: Request) -> Response:
        objects = [
            {
                "oid": one["oid"],
                "size": one["size"],
                "actions": {"upload": {"href": f"{self.address}/large/{one['oid']}"}},
            }
            for one in (await request.json())["objects"]
        ]
        return JSONResponse({"transfer": "basic", "objects": objects})

    async def put(self, request: Request) -> Response:
        content = await request.body()
        oid = request.path_params["oid"]
        if hashlib.sha256(content).hexdigest() != oid:
            return Response(status_code=400)
        self.large[oid] = content
        return Response()

    async def commit(self, request: Request) -> Response:
        for line in (await request.body()).decode().splitlines():
            one = json.loads(line)
            value = one["value"]
            if one["key"] == "header":
                self.messages.append(value["summary"])
            elif one["key"] == "file":
                self.files[value["path"]] = base64.b64decode(value["content"])
            else:
                self.files[value["path"]] = self.large[value["oid"]]
        name = f"{request.path_params['a']}/{request.path_params['b']}"
        url = f"{self.address}/{name}/commit/1"
        return JSONResponse({"commitUrl": url, "commitOid": "1", "success": True})
