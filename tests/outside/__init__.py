"""Six pipelines that no schedule of ours was made for: does `auto` do as well on them as on the suite?

`python -m tests.outside` times `auto` on them beside the strategies that it asks.
"""
