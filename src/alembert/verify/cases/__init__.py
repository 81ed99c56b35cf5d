"""Families of cases, one file each; `alembert.verify.discover` finds every case in them."""
