"""Models of a studio: their files, their suggestions under fixes, and the process that trains them."""
