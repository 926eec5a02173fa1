"""Mathematics as MathML, made when the site is built: it needs no network, no script and no LaTeX."""

import re

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.math import get_node_equation_number

UNKNOWN = [  # commands that docutils does not know, and what is written instead
    (r"\\dots\b", r"\\ldots"),
    (r"\\[bB]ig(?=[()])", ""),
    (r"\\textstyle\b", ""),
    (r"\\textbf\b", r"\\text"),
]


def formula_of(node, block=False):
    """MathML of a node."""
    text = node.astext()
    for pattern, instead in UNKNOWN:
        text = re.sub(pattern, instead, text)
    return tex2mathml(text, as_block=block)


def visit_inline(translator, node):
    translator.body.append(formula_of(node))
    raise SkipNode


def visit_block(translator, node):
    number = ""
    if node["number"]:
        number = f'<span class="eqno">({get_node_equation_number(translator, node)})</span>'
    formula = formula_of(node, block=True)
    translator.body.append(translator.starttag(node, "div", CLASS="math") + number + formula + "</div>\n")
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
