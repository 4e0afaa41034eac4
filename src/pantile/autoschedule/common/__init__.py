"""What strategies share: facts about stages, footprints of tiles, inlining, and from groups to a legal schedule."""
