"""STUB, replaced by the page work: what the worker calls. The one file that may import js and pyodide."""


def start(query: str) -> str:
    import panel as pn
    from bokeh.plotting import figure
    from panel.io.pyodide import init_doc

    init_doc()
    plot = figure(height=300)
    plot.line([1, 2], [1, 2])
    pn.pane.Bokeh(plot).servable()
    return query
