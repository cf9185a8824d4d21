"""Operating system and hardware: files, directories, signals, threads and devices."""
