"""Reports of judged campaigns.

`findings` has what was found; `sections/` turns it into rows and shows them, one module for each section;
`page`, `export`, `terminal` and `state` assemble the sections into a page, files, lines and Markdown.
`layout/` is what all pages share; `figures/` has the drawings.
"""
