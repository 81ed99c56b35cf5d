"""Seeing models and motions: a live viewer, a page that stands alone, films and plots.

`al.view(model)` and `al.view(run)` open the viewer; `run.to_html("run.html")` writes a page.
"""

from alembert.arguments import make_callable
from alembert.view.animation import Animation as Animation
from alembert.view.animation import read_motion as read_motion
from alembert.view.figures import plot_convergence as plot_convergence
from alembert.view.film import write_film as write_film
from alembert.view.page import write_html as write_html
from alembert.view.page import write_page as write_page
from alembert.view.scene import Scene as Scene
from alembert.view.scene import scene as scene
from alembert.view.window import Shown as Shown
from alembert.view.window import view as view
from alembert.view.window import widget as widget

make_callable(__name__, view)
