"""What the open button shows: vLLM's own description of its API, instead of nothing at the root."""


class StartPage:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"] == "/":
            await send({"type": "http.response.start", "status": 307, "headers": [(b"location", b"/docs")]})
            await send({"type": "http.response.body", "body": b""})
            return
        await self.app(scope, receive, send)
