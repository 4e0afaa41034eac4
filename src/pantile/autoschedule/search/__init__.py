"""How `auto` searches: schedules of all strategies, crossed and resized, by one price in seconds."""
