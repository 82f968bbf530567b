"""How Sphinx makes the site; `docs/build.py` puts its pages together first."""

project = "gradsmith"
author = "the gradsmith authors"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_heading_anchors = 5                    # as code hosts make them
myst_links_external_new_tab = False
html_show_copyright = False
html_theme = "furo"
html_title = "gradsmith"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
suppress_warnings = ["misc.highlighting_failure"]       # of output that is shown as it is
