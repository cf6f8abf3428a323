"""What the browser tests share: a JupyterLab server, a browser, and hands and eyes for the page."""
