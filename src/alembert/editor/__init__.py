"""The editor of models in the browser: `alembert build model.toml`, or `edit("model.toml")`."""

from alembert.editor.document import ModelDocument as ModelDocument
from alembert.editor.document import python_source as python_source
from alembert.editor.server import Editor as Editor
from alembert.editor.server import edit as edit
