"""`python -m app`: start the what-if app."""

import sys

from app.serving.start import main

if __name__ == "__main__":
    sys.exit(main())
