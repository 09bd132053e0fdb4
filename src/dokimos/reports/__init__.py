"""Reports of judged campaigns.

`findings` has what was found; `sections/` turns it into rows and shows them, one module for each section;
`page`, `export`, `terminal` and `state` put the sections together as a page, files, lines and Markdown.
`layout/` is what all pages share, `figures/` draws.
"""
