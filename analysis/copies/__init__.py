"""From marks to copies: which operations are copied, when, behind which gates, for whom; `plan.py` puts it together."""
