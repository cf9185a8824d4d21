"""What an evaluation tells besides the precision: by class, confusions, calibration, mistakes; as
text, pictures and a file."""
