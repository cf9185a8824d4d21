"""Operating system and hardware."""
