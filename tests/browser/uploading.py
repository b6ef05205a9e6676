"""Bringing files to the app, as a visitor does."""

from typing import Any

from tests.browser.visitor import Visitor


def csv(prompt_tokens: int) -> str:
    """Return a small trace in Azure's format, its prompts from so many tokens on."""
    rows = (
        f"2024-05-10 00:00:{second:02d}.000000,{prompt_tokens + 10 * second},{20 + second}\n"
        for second in range(60)
    )
    return "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(rows)


def upload(visitor: Visitor, name: str, content: bytes, *, place: int = 0) -> None:
    """Upload a file: place 0 takes a trace, 1 a scenario, 2 a model."""
    payload = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    files_of(visitor).nth(place).set_input_files(payload)
    visitor.page.wait_for_timeout(300)
    visitor.still()


def files_of(visitor: Visitor) -> Any:
    """Return the places for files, their expander opened."""
    uploaders = visitor.page.locator("[data-testid=stFileUploader]")
    if not (uploaders.count() and uploaders.first.is_visible()):
        visitor.page.get_by_text("Your own files").click()
        uploaders.first.wait_for(state="visible")
    return uploaders.locator("input[type=file]")
