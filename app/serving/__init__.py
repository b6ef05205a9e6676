"""How the app is started: its command line and Streamlit's settings."""
