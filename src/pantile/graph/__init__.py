"""A checked, ordered, frozen pipeline of stages."""
