"""Streamlit's settings for the app: palette, limits, nothing that talks to the outside."""

from app.state.uploads import TRACE_MB

READY = "SERVETWIN_READY"
"""Environment variable with the line that the server prints when it is ready."""

# Metric deltas follow red and green: vermillion and blue of the charts' palette, whose difference
# colour-blind readers see too.
_THEME = {
    "theme.redColor": "#D55E00",
    "theme.greenColor": "#0072B2",
    "theme.primaryColor": "#0072B2",
    "theme.redTextColor": "#A84A00",
    "theme.greenTextColor": "#0072B2",
    "theme.font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
}
_HEADINGS = "1.9rem,1.6rem,1.4rem,1.25rem,1.1rem,1rem"
# Eight cards in two rows: figures with their units have to fit at 1280 px.
_SIZES = {"theme.metricValueFontSize": "1.6rem", "theme.headingFontSizes": _HEADINGS}
# Captions are drawn at 60 % of it: on white that has to keep a contrast of 4.5.
_LIGHT = {"theme.light.textColor": "#000000"}
_DARK = {
    "theme.dark.backgroundColor": "#0E1117",
    "theme.dark.secondaryBackgroundColor": "#1B2129",
    "theme.dark.sidebar.backgroundColor": "#151A21",
    "theme.dark.primaryColor": "#56B4E9",
    "theme.dark.greenColor": "#56B4E9",
    "theme.dark.greenTextColor": "#56B4E9",
    "theme.dark.redTextColor": "#FF8A3D",
}
_SERVER = {
    "server.headless": "true",
    "server.fileWatcherType": "none",
    "server.maxUploadSize": str(TRACE_MB),
    "server.maxMessageSize": "64",
    "server.disconnectedSessionTTL": "120",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "viewer",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": "false",
    "runner.magicEnabled": "false",
    "global.developmentMode": "false",
}


def flags(host: str, port: int, base_path: str) -> list[str]:
    """Return Streamlit's command-line flags.

    Args:
        host: address to listen on.
        port: to listen on.
        base_path: path that a reverse proxy serves the app under; empty: the root.
    """
    settings = {
        **_SERVER,
        **_THEME,
        **_SIZES,
        **_LIGHT,
        **_DARK,
        "server.address": host,
        "server.port": str(port),
        "server.baseUrlPath": base_path,
    }
    return [f"--{key}={value}" for key, value in settings.items()]
