"""One case per file; `alembert.verify.discover` finds them."""
