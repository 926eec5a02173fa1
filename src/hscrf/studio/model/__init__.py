"""Models of a studio: their files, what they suggest under fixes, and the process that trains them."""
