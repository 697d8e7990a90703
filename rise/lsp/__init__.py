"""The language server: `rise lsp`. Only `server`, `positions` and the features import pygls or lsprotocol.

`documents` keeps what is open and what is known of it; `names` says what a name means, `typed` which type
stands at a place, also where a definition is wrong. The features are functions of these.
"""
