"""What the pages of all reports share; each report has its own pictures and words."""
