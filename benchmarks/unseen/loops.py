"""x"""

LOOPS = {}
