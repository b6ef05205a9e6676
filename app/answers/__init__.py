"""What the app asks the twin: plain functions, JSON-ready answers, no Streamlit."""
