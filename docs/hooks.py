"""Adapts the pages to the site, so that their sources can also be read in the repository.

A page may link to any file of the repository by its relative path. Pages (`.md`) of the repository's root are also
pages of the site. Any other linked file is shown on a page of its own. Pictures are embedded in their page and use its
colours. Public names of `bimetal` that are in no group of the Python reference are added at its end. A page that loads
anything from another host is an error.
"""

import ast
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")
ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|link)\b(?![^>]*rel=["']?canonical)[^>]*\s(?:src|href)=["']?(?:https?:)?//[^>]*>"""
)
PICTURE = re.compile(r'<img alt="([^"]*)" src="([^":]*pictures/[^":]*\.svg)"\s*/?>')
LANGUAGES = {".rs": "rust", ".py": "python", ".toml": "toml", ".md": "markdown"}


def uri_of(path: str) -> str:
    """Path in the site of a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return path if "/" not in path and path.endswith(".md") else f"source/{path}.md"


def path_of(uri: str) -> str:
    """The file of the repository that a link leads to."""
    if uri.startswith("source/"):
        return uri.removeprefix("source/").removesuffix(".md")
    return uri if (ROOT / uri).is_file() and "/" not in uri else f"docs/{uri}"


def linked(path: str, text: str) -> set[str]:
    """Files of the repository outside `docs` that a file links to."""
    targets = {posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) for link in LINK.findall(text)}
    return {target for target in targets if not target.startswith("docs/") and (ROOT / target).is_file()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the linked files to the site."""
    pages = [
        (f"docs/{file.src_uri}", file.content_string)
        for file in files.documentation_pages()
        if file.src_uri.endswith(".md")
    ]
    seen: set[str] = {"README.md"}
    while pages:
        for path in sorted(linked(*pages.pop()) - seen):
            seen.add(path)
            text = (ROOT / path).read_text()
            if path.endswith(".md"):
                pages.append((path, text))
            else:
                text = f"# `{path}`\n\n`````{LANGUAGES.get(Path(path).suffix, 'text')}\n{text.rstrip()}\n`````\n"
            files.append(File.generated(config, uri_of(path), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites links to the paths of their files in the site."""
    path = path_of(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[1]))
        if target == "README.md":
            target = "docs/index.md"
        return posixpath.relpath(uri_of(target), posixpath.dirname(page.file.src_uri) or ".")

    if page.file.src_uri == "reference/python.md":
        markdown = with_attributes(with_other_names(markdown))
    return markdown if page.file.src_uri.startswith("source/") else LINK.sub(moved, markdown)


def with_other_names(markdown: str) -> str:
    """Adds the public names that are in no group of the reference."""
    module = ast.parse((ROOT / "python/bimetal/__init__.py").read_text())
    names = next(
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    )
    grouped = set(re.findall(r"^::: bimetal\.(\w+)$", markdown, re.MULTILINE))
    others = [name for name in names if name not in grouped and not name.startswith("_")]
    return markdown + ("\n## More\n" if others else "") + "".join(f"\n::: bimetal.{name}\n" for name in others)


ATTRIBUTES_ALONE = """\
    options:
      members: []
      show_docstring_description: false
      show_root_heading: false
      show_root_toc_entry: false
      show_signature: false
"""


def with_attributes(markdown: str) -> str:
    """Adds the attributes of the records that classes extend to these classes."""
    sources = "".join(path.read_text() for path in sorted((ROOT / "python/bimetal").glob("_*.py")))
    for name in re.findall(r"^class (\w+)\(_records\.\1\):", sources, re.MULTILINE):
        record = f"\n::: bimetal._records.{name}\n{ATTRIBUTES_ALONE}"
        entry = re.compile(rf"^::: bimetal\.{name}\n(?:    .*\n)*", re.MULTILINE)
        markdown = entry.sub(lambda found, record=record: found[0] + record, markdown)
    return markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Embeds pictures in their page, and removes the markup of another documentation system from the reference."""

    def drawn(image: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), image[2]))
        picture = (ROOT / path).read_text()
        return re.sub(r"\s*<style>.*?</style>|\scolor=\"[^\"]*\"", "", picture, count=2)

    html = PICTURE.sub(drawn, html).replace('<script src=""> </script>', "")
    return re.sub(r":(?:class|func|meth|exc|attr):(?=<code>)", "", html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuses pages that load anything from another host."""
    if found := ELSEWHERE.search(output):
        raise PluginError(f"{page.file.src_uri} loads from another host: {found[0]}")
    return output
