"""Published cases, closed forms, identities and other programs: what shows that the numbers are right.

from alembert import verify

results = verify.run(verify.select(verify.discover(), tags=["iftomm"]))
print(results.summary)
"""

from alembert.verify.case import KINDS as KINDS
from alembert.verify.case import TAGS as TAGS
from alembert.verify.case import Case as Case
from alembert.verify.case import Check as Check
from alembert.verify.case import Line as Line
from alembert.verify.case import Plot as Plot
from alembert.verify.case import Skipped as Skipped
from alembert.verify.case import case as case
from alembert.verify.results import CaseResult as CaseResult
from alembert.verify.results import Quantity as Quantity
from alembert.verify.results import Results as Results
from alembert.verify.results import compare as compare
from alembert.verify.runner import discover as discover
from alembert.verify.runner import run as run
from alembert.verify.runner import run_case as run_case
from alembert.verify.runner import select as select
