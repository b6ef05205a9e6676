"""The what-if app: a Streamlit UI on everything the twin knows.

Pages draw, parts are what they share, answers ask the twin (and know nothing of Streamlit).
"""
