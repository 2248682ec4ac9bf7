"""Redirects the open button from the root, where vLLM has no page, to vLLM's description of its API."""


class StartPage:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"] == "/":
            await send({"type": "http.response.start", "status": 307, "headers": [(b"location", b"/docs")]})
            await send({"type": "http.response.body", "body": b""})
            return
        await self.app(scope, receive, send)
