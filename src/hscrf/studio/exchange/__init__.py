"""Labels in and out: file formats, other programs, two databases of two people."""
