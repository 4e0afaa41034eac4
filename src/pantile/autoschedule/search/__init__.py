"""How `auto` searches: schedules of all strategies, crossed over and resized, by predicted seconds."""
