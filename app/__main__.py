"""`python -m app`: start the what-if app."""

from app.serving.start import main

if __name__ == "__main__":
    main()
