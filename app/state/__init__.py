"""What is on screen, as data: the view, its link, its uploads."""
